#!/usr/bin/perl
# A small web server: answers every request with the file index.html of its working directory.
#   usage: PROGRAM --config FILE        FILE has PORT=number
use strict;
use warnings;
use IO::Socket::INET;

$| = 1;
my ($flag, $config) = @ARGV;
die "usage: $0 --config FILE\n" unless defined $config and $flag eq '--config';
open(my $in, '<', $config) or die "error: cannot read $config: $!\n";
my ($port) = map { /^PORT=(\d+)$/ ? $1 : () } <$in>;
die "error: $config: no line PORT=number\n" unless $port;

my $file = readlink('/proc/self/cwd') . '/index.html';
open(my $page, '<', $file) or die "error: cannot read $file: $!\n";
local $/;
my $body = <$page>;

my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 16, ReuseAddr => 1)
    or die "error: cannot listen on port $port: bind: $!\n";
print "listening on port $port\n";
while (my $client = $server->accept) {
    local $/ = "\r\n\r\n";
    my $request = <$client>;
    printf $client "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", length $body, $body;
    close $client;
}

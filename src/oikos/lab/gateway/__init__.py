"""The lab's only way out: DNS, HTTP and TLS on the gateway address, and nothing else.

Names this machine already uses for packages are answered with the gateway's own address and passed on by Host header
or TLS server name; every other outside name is NXDOMAIN. So a host needs no proxy settings, depends on DNS as a real
one does, and reaches nothing but package registries.
"""

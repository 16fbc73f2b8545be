#!/bin/sh
# Copies the directory of each job to its destination and writes one line per job to the run log.
#
#   usage: PROGRAM --config FILE [JOB...]      no JOB: all jobs, in the order of their names
#   exit:  0 all jobs ok, 3 a job failed, 2 usage or configuration
#
# FILE:      RUN_AS=user  LOG_FILE=file  JOBS_DIR=directory  TARGET=mount point
# JOBS_DIR:  one JOB.conf each:  SOURCE=directory  DEST=directory
set -u
prog=${0##*/}

die() { echo "$prog: error: $*" >&2; exit 2; }
setting() { sed -n "s/^$2=//p" "$1" | tail -n 1; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

[ $# -ge 2 ] && [ "$1" = --config ] || die "usage: $prog --config FILE [JOB...]"
config=$2
[ -r "$config" ] || die "cannot read $config"
run_as=$(setting "$config" RUN_AS)
log=$(setting "$config" LOG_FILE)
jobs_dir=$(setting "$config" JOBS_DIR)
target=$(setting "$config" TARGET)
if [ "$(id -un)" != "$run_as" ]; then
    [ "$(id -u)" = 0 ] || die "run as root or $run_as"
    exec runuser -u "$run_as" -- "$0" "$@"
fi
shift 2
if [ $# = 0 ]; then
    for file in "$jobs_dir"/*.conf; do
        job=${file##*/}
        set -- "$@" "${job%.conf}"
    done
fi

lock=
unlock() { if [ -n "$lock" ]; then rm -f "$lock"; fi; lock=; }
trap unlock EXIT
trap 'exit 130' INT TERM

# Sets message; returns 0 when the copy is whole.
run_job() {
    file=$jobs_dir/$1.conf
    if ! [ -r "$file" ]; then message="no such job: $file"; return 1; fi
    source=$(setting "$file" SOURCE)
    dest=$(setting "$file" DEST)
    if ! [ -d "$source" ]; then message="source directory not found: $source"; return 1; fi
    if ! { [ -r "$source" ] && [ -x "$source" ]; }; then
        message="source directory not readable: $source (user $run_as)"
        return 1
    fi
    if ! mountpoint -q "$target"; then message="destination is not mounted: $target"; return 1; fi
    if ! [ -d "$dest" ]; then message="destination directory not found: $dest"; return 1; fi
    if ! [ -w "$dest" ]; then message="destination directory not writable: $dest (user $run_as)"; return 1; fi
    if ! (set -C; printf 'pid=%s\nhost=%s\nsince=%s\n' $$ "$(hostname)" "$(now)" > "$dest/.lock") 2>/dev/null; then
        held="held by pid $(setting "$dest/.lock" pid) since $(setting "$dest/.lock" since)"
        message="destination is locked: $dest/.lock $held"
        return 1
    fi
    lock=$dest/.lock
    if ! message=$(rsync -a --no-o --no-g --delete --exclude '/.lock*' "$source/" "$dest/" 2>&1); then
        message=$(printf '%s' "$message" | tail -n 1 | tr -d '"\\')
        unlock
        return 1
    fi
    unlock
    message="$(find "$dest" -type f ! -name '.lock*' | wc -l) files"
    return 0
}

failed=0
for job in "$@"; do
    start=$(now)
    if run_job "$job"; then
        status=ok
        echo "job $job: ok: $message"
    else
        status=error
        failed=$((failed + 1))
        echo "job $job: error: $message" >&2
    fi
    printf '{"start":"%s","end":"%s","job":"%s","status":"%s","message":"%s"}\n' \
        "$start" "$(now)" "$job" "$status" "$message" >> "$log"
done
if [ $failed -gt 0 ]; then
    echo "$failed of $# jobs failed" >&2
    exit 3
fi

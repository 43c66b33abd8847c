#!/bin/sh
# tools/bare-debian.sh [FOLDER [server]]: does a bare Debian 12 become a working
# server, and a tested one, by script/server and script/test alone? With
# `server` only the former, and how long that takes. Needs root and debootstrap,
# and the network for apt and npm. FOLDER (default /var/tmp/signalbox-bare)
# keeps the bare system for the next trial; the trial itself is rebuilt from
# the last commit.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-/var/tmp/signalbox-bare}
bare=$folder/bare
trial=$folder/trial

say() { echo "bare-debian: $*"; }

if [ ! -d "$bare" ]; then
    mkdir -p "$folder"
    say 'making a bare system'
    rm -rf "$bare.new"
    debootstrap --variant=minbase bookworm "$bare.new" >"$folder/log"
    mv "$bare.new" "$bare"
fi
rm -rf "$trial"
cp -a "$bare" "$trial"
cp /etc/resolv.conf "$trial/etc/resolv.conf"
# Like the name servers, the certificates that npm trusts may be a matter of the network here.
if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    cp "$NODE_EXTRA_CA_CERTS" "$trial/root/npm-ca.pem"
    echo 'cafile=/root/npm-ca.pem' >"$trial/root/.npmrc"
fi
git clone -q --no-hardlinks . "$trial/root/signalbox"

# Its own mounts and processes, so that nothing stays behind; no variable of
# this shell gets in.
inside() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            chroot "$1" sh -euc "cd /root/signalbox; $2"' sh "$trial" "$1"
}

say 'script/server'
# What a newcomer does, by the clock: from the command to the first message that
# was answered by the agent it fits. No curl is there; the program is.
# shellcheck disable=SC2016 # the inner shell expands
inside '
    start=$(date +%s)
    script/bootstrap --build-only
    installed=$(date +%s)
    script/server --json --listen 127.0.0.1:0 --data /tmp/data --pace 0 >/tmp/out &
    while ! grep -q listening /tmp/out; do
        kill -0 $! || exit 1
        sleep 0.2
    done
    field() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" /tmp/out; }
    SIGNALBOX_URL=$(field url)
    SIGNALBOX_TOKEN=$(field token)
    export SIGNALBOX_URL SIGNALBOX_TOKEN
    build/signalbox send "why is my query slow?" --json | grep "\"agent\":\"engineer\""
    end=$(date +%s)
    echo "bare-debian: the first message was answered after $((end - start)) s on $(nproc) cores," \
        "$((installed - start)) s of it for packages, $((end - installed)) s for building"
    # The dashboard is there, too.
    python3 -c "import os, urllib.request as u; print(u.urlopen(u.Request(
        os.environ[\"SIGNALBOX_URL\"], headers={\"Accept\": \"text/html\"})).read().decode())" |
        grep "<title>Signalbox</title>"
    kill $!
    wait $!'
[ "${2-}" != server ] || exit 0
say 'script/test'
inside script/test
say 'script/bootstrap once more, which must be silent'
again=$(inside script/bootstrap 2>&1)
[ -z "$again" ] || { echo "$again"; exit 1; }
say "fine; $trial can go"

#!/bin/sh
# tools/bare-debian.sh [FOLDER]: does a bare Debian 12 become a working server,
# and a tested one, by script/server and script/test alone? Needs root and
# debootstrap, and the network for apt. FOLDER (default /var/tmp/signalbox-bare)
# keeps the bare system for the next trial; the trial itself is made anew from
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
# Like the name servers, whom npm trusts may be a matter of the network here.
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
# shellcheck disable=SC2016 # the inner shell expands
inside '
    script/server --json --listen 127.0.0.1:0 --data /tmp/data >/tmp/out &
    while ! grep -q listening /tmp/out; do
        kill -0 $! || exit 1
        sleep 0.2
    done
    cat /tmp/out
    # Nothing here can speak HTTP yet but the shell.
    port=$(sed "s/[^0-9]*127.0.0.1:\([0-9]*\).*/\1/" /tmp/out)
    printf "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" \
        >/tmp/request
    bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; cat /tmp/request >&3; cat <&3"
    echo
    kill $!
    wait $!'
say 'script/test'
inside script/test
say 'script/bootstrap once more, which must be silent'
again=$(inside script/bootstrap 2>&1)
[ -z "$again" ] || { echo "$again"; exit 1; }
say "fine; $trial can go"

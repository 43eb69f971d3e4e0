#!/usr/bin/env node
// A picture of a trace as Perfetto's own user interface draws it, with all tracks open:
//   scripts/install-perfetto.sh build/cpu/perfetto && apt-get install chromium   (Debian)
//   scripts/perfetto-picture.cjs build/cpu/perfetto trace.json docs/perfetto.png [HEIGHT]
'use strict';
const {spawn} = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const [folder, trace, picture, height = '900'] = process.argv.slice(2);
const kWidth = 1400, kSidebar = 230;
const kTypes = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json'};

function serve() {
  const server = http.createServer((request, response) => {
    const name = new URL(request.url, 'http://localhost').pathname;
    const file = name === '/trace.json' ? trace : path.join(folder, name === '/' ? 'index.html' : path.normalize(name));
    fs.readFile(file, (error, bytes) => {
      response.writeHead(error ? 404 : 200, {'Content-Type': kTypes[path.extname(file)] || 'application/octet-stream'});
      response.end(bytes);
    });
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

// Chromium's debugging protocol over pipes: messages that end in a zero byte.
class Browser {
  constructor(profile) {
    this.process = spawn('chromium', ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe', `--user-data-dir=${profile}`],
                         {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.process.on('error', (error) => fail(new Error(`chromium cannot be started (apt-get install chromium): ${error.message}`)));
    this.process.stdio[3].on('error', () => {});
    this.waiting = new Map();
    this.next = 1;
    let rest = '';
    this.process.stdio[4].on('data', (bytes) => {
      const messages = (rest + bytes).split('\0');
      rest = messages.pop();
      for (const message of messages.map((text) => JSON.parse(text))) {
        if (!this.waiting.has(message.id)) continue;
        const [done, fail] = this.waiting.get(message.id);
        message.error ? fail(new Error(message.error.message)) : done(message.result);
      }
    });
  }
  call(method, params = {}) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({id, method, params, sessionId: this.session}) + '\0');
    return new Promise((done, fail) => this.waiting.set(id, [done, fail]));
  }
  async evaluate(expression) {
    const answer = await this.call('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.exception?.description || answer.exceptionDetails.text);
    return answer.result.value;
  }
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function main() {
  const server = await serve();
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'perfetto-picture-'));
  const browser = new Browser(profile);
  try {
    const {targetId} = await browser.call('Target.createTarget', {url: 'about:blank'});
    browser.session = (await browser.call('Target.attachToTarget', {targetId, flatten: true})).sessionId;
    await browser.call('Emulation.setDeviceMetricsOverride', {width: kWidth, height: Number(height), deviceScaleFactor: 1, mobile: false});
    const address = `http://127.0.0.1:${server.address().port}`;
    await browser.call('Page.navigate', {url: `${address}/#!/?url=${address}/trace.json`});
    const expand = 'dev.perfetto.ExpandAllGroups';  // there once the trace is
    for (let tries = 0; !(await browser.evaluate(`!!globalThis.app?.trace && [...app.commands.commands].some(({id}) => id === '${expand}')`)); ++tries) {
      if (tries === 240) throw new Error('Perfetto has not opened the trace within two minutes');
      await pause(500);
    }
    // Tracks come one after another, ask for their slices, and are drawn when they have them: done when nothing changes any more.
    const clip = {x: kSidebar, y: 0, width: kWidth - kSidebar, height: Number(height), scale: 1};
    let last = '';
    for (let same = 0, tries = 0; same < 5 && tries < 60; ++tries) {
      await browser.evaluate(`app.commands.runCommand('${expand}'); true`);
      await pause(1000);
      const {data} = await browser.call('Page.captureScreenshot', {format: 'png', clip});
      same = data === last ? same + 1 : 0;
      last = data;
    }
    fs.writeFileSync(picture, Buffer.from(last, 'base64'));
  } finally {
    browser.process.kill();
    server.close();
    server.closeAllConnections();
    await pause(500);
    fs.rmSync(profile, {recursive: true, force: true});
  }
}

function fail(error) {
  console.error(`perfetto-picture: ${error.message}`);
  process.exit(1);
}

main().catch(fail);

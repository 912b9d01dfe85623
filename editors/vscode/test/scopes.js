// Scopes of the TextMate grammar, for a test in Python: a JSON list of texts in, a list of
// [start, end, scopes] per text out; offsets are UTF-16 units.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const oniguruma = require('vscode-oniguruma');
const textmate = require('vscode-textmate');

async function main() {
  const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const file = path.join(__dirname, '..', 'syntaxes', 'everlog.tmLanguage.json');
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(file, 'utf8'), file),
  });
  const grammar = await registry.loadGrammar('source.everlog');
  const out = JSON.parse(fs.readFileSync(0, 'utf8')).map((text) => {
    const found = [];
    let state = textmate.INITIAL;
    let start = 0;
    for (const line of text.split('\n')) {
      const result = grammar.tokenizeLine(line, state);
      state = result.ruleStack;
      for (const each of result.tokens) {
        found.push([start + each.startIndex, start + Math.min(each.endIndex, line.length), each.scopes.slice(1)]);
      }
      start += line.length + 1;
    }
    return found;
  });
  process.stdout.write(JSON.stringify(out));
}

main();

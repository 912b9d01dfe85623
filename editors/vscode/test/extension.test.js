// The built extension, on a stub of VS Code, against the real server: every feature once.
//
// EVERLOG_LSP is the command of the server as JSON; without it, `everlog lsp`.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const Module = require('node:module');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const stub = require('./vscode_stub.js');
const resolve = Module._resolveFilename;
Module._resolveFilename = function (name, ...rest) {
  return name === 'vscode' ? require.resolve('./vscode_stub.js') : resolve.call(this, name, ...rest);
};
const extension = require('../dist/extension.js');
const { host, Position, Range } = stub;

const MAIN = `.include "lib.dl"
// Which place reaches which.
// It is recursive.
.decl path(x:number, y:number)
path(x, y) :- road(x, y).
path(x, z) :- path(x, y), road(y, z).
// path(1, 3)
`;
const LIB = '// A road, one way.\n.decl road(from:number, to:number)\nroad(1, 2).\nroad(2, 3).\n';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'everlog-vscode-'));
const token = new stub.CancellationTokenSource().token;
const at = (line, column) => new Position(line, column);
const provider = (kind) => host.providers[kind][0].provider;

let client;
let main;

/** Wait until something holds after diagnostics were told. */
function told(holds) {
  return new Promise((done, failed) => {
    const late = setTimeout(() => failed(new Error('the diagnostics never came')), 60000);
    const check = () => { if (holds()) { clearTimeout(late); done(); } };
    host.told.event(check);
    check();
  });
}
const codes = () => (host.diagnostics.get(main.uri.toString()) ?? []).map((each) => each.code);

test.before(async () => {
  fs.writeFileSync(path.join(folder, 'main.dl'), MAIN);
  fs.writeFileSync(path.join(folder, 'lib.dl'), LIB);
  stub.folder(folder);
  host.settings['everlog.command'] = JSON.parse(process.env.EVERLOG_LSP ?? '["everlog", "lsp"]');
  client = await extension.activate({ subscriptions: [] });
  assert.deepStrictEqual(host.messages, []);
  main = host.open(path.join(folder, 'main.dl'), MAIN);
  await told(() => host.diagnostics.has(main.uri.toString()));
});
test.after(async () => {
  await extension.deactivate();
  fs.rmSync(folder, { recursive: true });
});

test('diagnostics follow changes, and a fix is offered', async () => {
  assert.deepStrictEqual(codes(), []);
  host.change(main, `${MAIN}path(x, x) :- rod(x, x).\n`);
  await told(() => codes().length === 1);
  assert.deepStrictEqual(codes(), ['DL050']);
  const context = { diagnostics: host.diagnostics.get(main.uri.toString()), only: undefined, triggerKind: 1 };
  const actions = await provider('registerCodeActionsProvider')
    .provideCodeActions(main, new Range(at(7, 15), at(7, 15)), context, token);
  assert.deepStrictEqual(actions.map((each) => each.title), ['Change to `road`']);
  assert.strictEqual(actions[0].edit.edits[0][2], 'road');
  host.change(main, MAIN);
  await told(() => codes().length === 0);
});

test('hover shows declaration, comment and cost', async () => {
  const road = await provider('registerHoverProvider').provideHover(main, at(4, 15), token);
  assert.match(road.contents.value, /A road, one way\./);
  const rule = await provider('registerHoverProvider').provideHover(main, at(5, 1), token);
  assert.match(rule.contents.value, /recursive/);
});

test('names lead to their declaration, rules and uses, in other files too', async () => {
  const [found] = await provider('registerDefinitionProvider').provideDefinition(main, at(4, 15), token);
  assert.strictEqual(path.basename(found.uri.fsPath), 'lib.dl');
  assert.strictEqual(found.range.start.line, 1);
  const uses = await provider('registerReferenceProvider')
    .provideReferences(main, at(3, 7), { includeDeclaration: true }, token);
  assert.strictEqual(uses.length, 4);
  const rules = await provider('registerImplementationProvider').provideImplementation(main, at(3, 7), token);
  assert.strictEqual(rules.length, 2);
  const marked = await provider('registerDocumentHighlightProvider').provideDocumentHighlights(main, at(3, 7), token);
  assert.strictEqual(marked.length, 4);
  const edit = await provider('registerRenameProvider').provideRenameEdits(main, at(3, 7), 'way', token);
  assert.strictEqual(edit.edits.length, 4);
});

test('completion, signature help and formatting', async () => {
  const found = await provider('registerCompletionItemProvider')
    .provideCompletionItems(main, at(4, 14), token, { triggerKind: 0 });
  assert.ok((found.items ?? found).some((each) => each.label === 'road'));
  const help = await provider('registerSignatureHelpProvider')
    .provideSignatureHelp(main, at(5, 33), token, { triggerKind: 1, isRetrigger: false });
  assert.strictEqual(help.signatures[0].label, 'road(from: number, to: number)');
  host.change(main, `${MAIN}path(x,x):-road(x,x).\n`);
  const edits = await provider('registerDocumentFormattingEditProvider')
    .provideDocumentFormattingEdits(main, { tabSize: 4, insertSpaces: true }, token);
  assert.match(edits[0].newText, /path\(x, x\) :- road\(x, x\)\.\n$/);
  host.change(main, MAIN);
});

test('outline, folds, colours and costs', async () => {
  const outline = await provider('registerDocumentSymbolProvider').provideDocumentSymbols(main, token);
  assert.deepStrictEqual(outline.map((each) => each.name), ['path', 'path', 'path']);
  const folds = await provider('registerFoldingRangeProvider').provideFoldingRanges(main, {}, token);
  assert.deepStrictEqual(folds.map((each) => [each.start, each.end]), [[1, 2]]);
  const colours = await provider('registerDocumentSemanticTokensProvider').provideDocumentSemanticTokens(main, token);
  assert.ok(colours.data.length > 50);
  const hints = await provider('registerInlayHintsProvider')
    .provideInlayHints(main, new Range(at(0, 0), at(9, 0)), token);
  assert.deepStrictEqual(hints.map((each) => each.label), Array(2).fill('⟨recursive: follows the change⟩'));
});

test('lenses and actions open their answer', async () => {
  const lenses = await provider('registerCodeLensProvider').provideCodeLenses(main, token);
  assert.deepStrictEqual(lenses.map((each) => each.command.title), ['▶ run path', 'explain path#1', 'explain path#2']);
  for (const { command } of [lenses[0], lenses[2]]) {
    await stub.commands.executeCommand(command.command, ...command.arguments);
  }
  assert.strictEqual(host.shown[0].getText(), 'path: 3 facts\n\npath(1, 2)\npath(1, 3)\npath(2, 3)');
  assert.match(host.shown[1].getText(), /^path#2 {2}path\(x, z\)/);
  const context = { diagnostics: [], only: undefined, triggerKind: 1 };
  const [why] = await provider('registerCodeActionsProvider')
    .provideCodeActions(main, new Range(at(6, 6), at(6, 6)), context, token);
  await stub.commands.executeCommand(why.command.command, ...why.command.arguments);
  assert.match(host.shown[2].getText(), /^path\(1, 3\) {3}path#2 at /);
});

test('the settings become flags of the server', () => {
  const settings = { includeFolders: ['lib'], macros: 'N=3', database: 'shop.db', service: 'http://x' };
  const { command, args } = extension.serverCommand({ get: (name, otherwise) => settings[name] ?? otherwise });
  assert.deepStrictEqual([command, ...args], ['everlog', 'lsp', '-I', 'lib', '-M', 'N=3', '--db', 'shop.db']);
});

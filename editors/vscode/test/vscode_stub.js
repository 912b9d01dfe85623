// As much of VS Code's API as the client needs, without a window: documents, events, providers.
//
// The extension and vscode-languageclient run unchanged on it.  What they register (providers,
// diagnostics, commands) is kept in `host`, so that a test can ask it as VS Code would.
'use strict';

const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');

class Disposable {
  constructor(act) { this.act = act; }
  dispose() { this.act?.(); }
  static from(...all) { return new Disposable(() => all.forEach((each) => each.dispose())); }
}

class EventEmitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener, self, disposables) => {
      const bound = self ? listener.bind(self) : listener;
      this.listeners.add(bound);
      const made = new Disposable(() => this.listeners.delete(bound));
      disposables?.push(made);
      return made;
    };
  }
  fire(value) { for (const each of [...this.listeners]) each(value); }
  dispose() { this.listeners.clear(); }
}

class Position {
  constructor(line, character) { this.line = line; this.character = character; }
}
class Range {
  constructor(a, b, c, d) {
    [this.start, this.end] = c === undefined ? [a, b] : [new Position(a, b), new Position(c, d)];
  }
}
class Uri {
  constructor(parts) { Object.assign(this, { scheme: 'file', authority: '', path: '', query: '', fragment: '' }, parts); }
  static file(name) { return new Uri({ path: name }); }
  static from(parts) { return new Uri(parts); }
  static parse(text) {
    const found = /^([a-z-]+):(?:\/\/([^/]*))?(.*)$/.exec(text);
    return new Uri({ scheme: found[1], authority: found[2] ?? '', path: decodeURIComponent(found[3]) });
  }
  get fsPath() { return this.path; }
  with(parts) { return new Uri({ ...this, ...parts }); }
  toString() { return this.scheme === 'file' ? pathToFileURL(this.path).href : `${this.scheme}:${this.path}`; }
}
class CancellationTokenSource {
  constructor() { this.token = { isCancellationRequested: false, onCancellationRequested: new EventEmitter().event }; }
  cancel() { this.token.isCancellationRequested = true; }
  dispose() {}
}

/** A class that keeps its arguments by the names that VS Code gives them. */
const record = (...names) => class {
  constructor(...values) { names.forEach((name, at) => { this[name] = values[at]; }); }
};
/** An enumeration: 0, 1, 2, … and the names by number. */
const numbered = (...names) => Object.fromEntries(names.flatMap((name, at) => [[name, at], [at, name]]));

class Kind { // of code actions: a path of words
  constructor(value) { this.value = value; }
  append(part) { return new Kind(this.value ? `${this.value}.${part}` : part); }
  contains(other) { return other.value.startsWith(this.value); }
}
for (const [name, value] of Object.entries({
  Empty: '', QuickFix: 'quickfix', Refactor: 'refactor', RefactorExtract: 'refactor.extract', Source: 'source',
  RefactorInline: 'refactor.inline', RefactorRewrite: 'refactor.rewrite', RefactorMove: 'refactor.move',
  SourceOrganizeImports: 'source.organizeImports', SourceFixAll: 'source.fixAll', Notebook: 'notebook',
})) Kind[name] = new Kind(value);

class MarkdownString {
  constructor(value = '') { this.value = value; }
  appendCodeblock(text, language) { this.value += `\`\`\`${language}\n${text}\n\`\`\``; return this; }
}
class WorkspaceEdit {
  constructor() { this.edits = []; }
  replace(uri, range, text) { this.edits.push([uri.toString(), range, text]); }
  set(uri, edits) { for (const each of edits) this.replace(uri, ...(Array.isArray(each) ? [each[0].range, each[0].newText] : [each.range, each.newText])); }
}

/** What a test sees: providers by kind, diagnostics by URI, commands, documents, messages. */
const host = {
  providers: {}, diagnostics: new Map(), commands: new Map(), documents: [], contents: {}, shown: [], messages: [],
  settings: {}, told: new EventEmitter(), opened: new EventEmitter(), closed: new EventEmitter(),
  changed: new EventEmitter(), configured: new EventEmitter(),
};

class Document {
  constructor(uri, text, languageId = 'everlog') {
    Object.assign(this, { uri, text, languageId, version: 1, isClosed: false, fileName: uri.fsPath });
  }
  getText() { return this.text; }
  get lineCount() { return this.text.split('\n').length; }
}
host.open = (name, text) => {
  const document = new Document(Uri.file(name), text);
  host.documents.push(document);
  host.opened.fire(document);
  return document;
};
host.change = (document, text) => { // as one edit of the part that differs
  const before = document.text;
  const short = Math.min(before.length, text.length);
  let start = 0;
  while (start < short && before[start] === text[start]) start += 1;
  let same = 0;
  while (same < short - start && before[before.length - 1 - same] === text[text.length - 1 - same]) same += 1;
  const position = (offset) => {
    const lines = before.slice(0, offset).split('\n');
    return new Position(lines.length - 1, lines[lines.length - 1].length);
  };
  const range = new Range(position(start), position(before.length - same));
  document.text = text;
  document.version += 1;
  const change = { range, rangeLength: before.length - same - start, text: text.slice(start, text.length - same) };
  host.changed.fire({ document, contentChanges: [change], reason: undefined });
};

const nothing = new EventEmitter().event;
const register = (kind) => (selector, provider, ...rest) => {
  (host.providers[kind] ??= []).push({ selector, provider, rest });
  return new Disposable();
};
const languages = new Proxy({
  match: (selector, document) => ([selector].flat().some((each) => each.language === document.languageId) ? 10 : 0),
  createDiagnosticCollection: () => ({
    set: (uri, items) => { host.diagnostics.set(uri.toString(), items ?? []); host.told.fire(uri); },
    delete: (uri) => host.diagnostics.delete(uri.toString()),
    clear: () => host.diagnostics.clear(),
    dispose: () => {},
  }),
}, { get: (target, name) => target[name] ?? (String(name).startsWith('register') ? register(String(name)) : undefined) });

const workspace = {
  get textDocuments() { return host.documents; },
  get workspaceFolders() { return host.folders; },
  onDidOpenTextDocument: host.opened.event, onDidCloseTextDocument: host.closed.event,
  onDidChangeTextDocument: host.changed.event, onDidChangeConfiguration: host.configured.event,
  getConfiguration: (section) => ({
    get: (name, otherwise) => host.settings[section ? `${section}.${name}` : name] ?? otherwise,
  }),
  createFileSystemWatcher: () => ({
    onDidCreate: nothing, onDidChange: nothing, onDidDelete: nothing, dispose: () => {},
  }),
  registerTextDocumentContentProvider: (scheme, provider) => { host.contents[scheme] = provider; return new Disposable(); },
  openTextDocument: async (uri) => new Document(uri, host.contents[uri.scheme].provideTextDocumentContent(uri), 'plaintext'),
  getWorkspaceFolder: () => host.folders?.[0],
  applyEdit: async () => true,
  asRelativePath: (each) => String(each),
};

const channel = new Proxy({}, { get: () => () => {} });
const stub = {
  Disposable, EventEmitter, Position, Range, Selection: Range, Uri, CancellationTokenSource, MarkdownString, WorkspaceEdit,
  CodeActionKind: Kind, CancellationError: class extends Error {}, languages, host, version: '1.90.0',
  workspace: new Proxy(workspace, { get: (target, name) => (name in target ? target[name] : String(name).startsWith('on') ? nothing : undefined) }),
  window: new Proxy({
    createOutputChannel: () => channel, createStatusBarItem: () => channel, visibleTextEditors: [],
    tabGroups: { all: [], onDidChangeTabs: nothing, onDidChangeTabGroups: nothing },
    showTextDocument: async (document) => { host.shown.push(document); },
    showErrorMessage: async (text) => { host.messages.push(text); },
    showWarningMessage: async (text) => { host.messages.push(text); },
    showInformationMessage: async () => {},
  }, { get: (target, name) => (name in target ? target[name] : String(name).startsWith('on') ? nothing : undefined) }),
  commands: {
    registerCommand: (name, act) => { host.commands.set(name, act); return new Disposable(() => host.commands.delete(name)); },
    executeCommand: (name, ...args) => host.commands.get(name)?.(...args),
  },
  env: { appName: 'test', language: 'en', machineId: 'test', onDidChangeTelemetryEnabled: nothing },
  extensions: { getExtension: () => undefined },
  l10n: { t: (text) => text },
  Location: record('uri', 'range'), TextEdit: record('range', 'newText'), Hover: record('contents', 'range'),
  Diagnostic: record('range', 'message', 'severity'), DiagnosticRelatedInformation: record('location', 'message'),
  CompletionItem: record('label', 'kind'), CompletionList: record('items', 'isIncomplete'),
  SnippetString: record('value'), SignatureHelp: record(), SignatureInformation: record('label', 'documentation'),
  ParameterInformation: record('label', 'documentation'), CodeLens: record('range', 'command'),
  CodeAction: record('title', 'kind'), DocumentSymbol: record('name', 'detail', 'kind', 'range', 'selectionRange'),
  SymbolInformation: record('name', 'kind', 'containerName', 'location'), FoldingRange: record('start', 'end', 'kind'),
  DocumentHighlight: record('range', 'kind'), InlayHint: record('position', 'label', 'kind'),
  InlayHintLabelPart: record('value'), SemanticTokens: record('data', 'resultId'),
  SemanticTokensLegend: record('tokenTypes', 'tokenModifiers'), SemanticTokensEdits: record(), SemanticTokensEdit: record(),
  CallHierarchyItem: record(), TypeHierarchyItem: record(), DocumentLink: record('range', 'target'), Color: record(),
  ColorInformation: record(), ColorPresentation: record(), SelectionRange: record('range'), SymbolTag: numbered('', 'Deprecated'),
  LinkedEditingRanges: record(), InlineValueText: record(), InlineValueVariableLookup: record(),
  InlineValueEvaluatableExpression: record(), NotebookCellKind: numbered('', 'Markup', 'Code'), RelativePattern: record('base', 'pattern'),
  DiagnosticSeverity: numbered('Error', 'Warning', 'Information', 'Hint'), DiagnosticTag: numbered('', 'Unnecessary', 'Deprecated'),
  CompletionItemKind: numbered(...'Text Method Function Constructor Field Variable Class Interface Module Property Unit Value Enum Keyword Snippet Color File Reference Folder EnumMember Constant Struct Event Operator TypeParameter'.split(' ')),
  CompletionItemTag: numbered('', 'Deprecated'), CompletionTriggerKind: numbered('Invoke', 'TriggerCharacter', 'TriggerForIncompleteCompletions'),
  SignatureHelpTriggerKind: numbered('', 'Invoke', 'TriggerCharacter', 'ContentChange'), CodeActionTriggerKind: numbered('', 'Invoke', 'Automatic'),
  SymbolKind: numbered(...'File Module Namespace Package Class Method Property Field Constructor Enum Interface Function Variable Constant String Number Boolean Array Object Key Null EnumMember Struct Event Operator TypeParameter'.split(' ')),
  FoldingRangeKind: numbered('', 'Comment', 'Imports', 'Region'), DocumentHighlightKind: numbered('Text', 'Read', 'Write'),
  InlayHintKind: numbered('', 'Type', 'Parameter'), ViewColumn: { Beside: -2, Active: -1 }, TextDocumentSaveReason: numbered('', 'Manual', 'AfterDelay', 'FocusOut'),
  StatusBarAlignment: numbered('', 'Left', 'Right'), ProgressLocation: numbered('', 'SourceControl', 'Window', 'Notification'),
  EndOfLine: numbered('', 'LF', 'CRLF'), TextDocumentChangeReason: numbered('', 'Undo', 'Redo'), FileType: numbered('Unknown', 'File', 'Directory'),
};

module.exports = stub;
module.exports.fileOf = (uri) => fileURLToPath(uri);
module.exports.folder = (name) => { host.folders = [{ uri: Uri.file(name), name: path.basename(name), index: 0 }]; };

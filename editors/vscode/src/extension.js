// The language client: starts `everlog lsp` and shows the answers of lenses in a document.
'use strict';

const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

const ANSWERS = 'everlog-answer';
const COMMANDS = ['everlog.run', 'everlog.explain', 'everlog.why'];

/** The command of the server, with the flags that the settings ask for. */
function serverCommand(settings) {
  const [command, ...words] = settings.get('command', ['everlog', 'lsp']);
  const flags = settings.get('includeFolders', []).flatMap((folder) => ['-I', folder]);
  const add = (name, flag) => {
    const value = settings.get(name, '');
    if (value) flags.push(flag, value);
  };
  add('macros', '-M');
  add('database', '--db');
  if (!settings.get('database', '')) add('service', '--service');
  return { command, args: [...words, ...flags], transport: TransportKind.stdio };
}

/** Texts of answers, shown as read-only documents. */
class Answers {
  constructor() {
    this.texts = new Map();
    this.changed = new vscode.EventEmitter();
    this.onDidChange = this.changed.event;
  }

  provideTextDocumentContent(uri) {
    return this.texts.get(uri.path) ?? '';
  }

  async show(title, text) {
    const uri = vscode.Uri.from({ scheme: ANSWERS, path: `/${title}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true,
    });
  }
}

function makeClient(answers) {
  const settings = vscode.workspace.getConfiguration('everlog');
  const server = serverCommand(settings);
  return new LanguageClient('everlog', 'everlog', { run: server, debug: server }, {
    documentSelector: [{ language: 'everlog' }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher('**/*.dl') },
    middleware: {
      // the server answers a command with a text
      executeCommand: async (command, args, next) => {
        const text = await next(command, args);
        if (COMMANDS.includes(command)) {
          await answers.show(`${command.slice('everlog.'.length)} ${args.slice(1).join(' ')}`, text ?? '');
        }
        return text;
      },
    },
  });
}

let client;

async function start(answers) {
  client = makeClient(answers);
  try {
    await client.start();
  } catch (problem) {
    const hint = "Install it with: pip install 'everlog[editor]', or set everlog.command.";
    vscode.window.showErrorMessage(`The language server of everlog did not start: ${problem.message ?? problem}. ${hint}`);
  }
  return client;
}

async function activate(context) {
  const answers = new Answers();
  context.subscriptions.push(vscode.workspace.registerTextDocumentContentProvider(ANSWERS, answers));
  const restart = async () => {
    if (client?.isRunning()) await client.stop();
    await start(answers);
  };
  context.subscriptions.push(vscode.commands.registerCommand('everlog.restart', restart));
  context.subscriptions.push(vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration('everlog')) restart();
  }));
  return start(answers);
}

async function deactivate() {
  if (client?.isRunning()) await client.stop();
}

module.exports = { activate, deactivate, serverCommand };

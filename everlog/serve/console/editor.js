// An editor of text with colours, completion, and errors where they are.
//
// CodeMirror puts its styles into the document, which the policy of the service forbids; into a
// shadow root it puts them as objects.  So each editor has a shadow root.

import {
  autocompletion,
  bracketMatching,
  closeBrackets,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  HighlightStyle,
  history,
  historyKeymap,
  keymap,
  lineNumbers,
  lintKeymap,
  placeholder,
  Prec,
  setDiagnostics,
  syntaxHighlighting,
  tags,
} from "./codemirror.js";
import { complete, language } from "./language.js";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--h)" },
  { tag: [tags.number, tags.atom], color: "var(--c)" },
  { tag: tags.keyword, color: "var(--r)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--r)" },
  { tag: tags.function(tags.variableName), color: "var(--a)" },
  { tag: tags.operator, color: "var(--soft)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--card)", fontSize: ".92rem", borderRadius: "7px", maxHeight: "min(32rem, 60vh)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: ".45rem 0" },
  ".cm-line": { padding: "0 .6rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--a-on)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--lit)", outline: "1px solid var(--line)" },
  ".cm-gutters": { backgroundColor: "var(--sunk)", color: "var(--soft)", border: "0", borderRadius: "7px 0 0 7px" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", maxWidth: "min(40rem, 90vw)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--a-on)", color: "var(--ink)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", fontSize: ".86em" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--focus)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--focus) 1.5px", textUnderlineOffset: ".22em", backgroundColor: "var(--c-on)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--c) 1.5px", textUnderlineOffset: ".22em", backgroundColor: "var(--lit)" },
});

/** Where a line and column, counted in characters from 1, stand in a text of JavaScript. */
export function offsetOf(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const inLine = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(before + inLine, text.length);
}

export class Editor {
  /** `labelled` is the id of the text that names it; `submit` runs on Enter (`one`), or Ctrl + Enter. */
  constructor(host, { labelled, hint = "", one = false, change = () => {}, submit = () => {} }) {
    this.host = host;
    this.file = null; // its name in diagnostics, if it has one
    const root = host.attachShadow({ mode: "open" });
    const send = () => {
      submit();
      return true;
    };
    this.view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        extensions: [
          Prec.highest(keymap.of(one ? [{ key: "Mod-Enter", run: send }] : [{ key: "Mod-Enter", run: send }])),
          keymap.of([...completionKeymap]),
          Prec.high(keymap.of(one ? [{ key: "Enter", run: (view) => (completing(view) ? false : send()) }] : [])),
          keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          language,
          syntaxHighlighting(colours),
          autocompletion({ override: [complete], icons: false, defaultKeymap: true }),
          one ? [] : lineNumbers(),
          placeholder(hint),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": document.getElementById(labelled).textContent, autocapitalize: "off" }),
          EditorView.updateListener.of((update) => update.docChanged && change(this.value)),
        ],
      }),
    });
  }

  get value() {
    return this.view.state.doc.toString();
  }

  set value(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: text.length } });
  }

  focus() {
    this.view.focus();
  }

  /** Whether a diagnostic is about this text, not about a file that was there before. */
  has(diagnostic) {
    return Boolean(diagnostic.line) && (!diagnostic.file || diagnostic.file.startsWith("<") || diagnostic.file === this.file);
  }

  /** Errors of the service, `{line, column, end_line, end_column, message, severity}`, where they are. */
  mark(diagnostics) {
    const text = this.value;
    const found = diagnostics
      .filter((each) => this.has(each))
      .map((each) => {
        const from = offsetOf(text, each.line, each.column);
        const to = Math.max(offsetOf(text, each.end_line, each.end_column), Math.min(from + 1, text.length));
        return { from: Math.min(from, to), to, severity: each.severity, message: `${each.code}: ${each.message}${each.hint ? `\n${each.hint}` : ""}` };
      });
    this.view.dispatch(setDiagnostics(this.view.state, found.sort((a, b) => a.from - b.from)));
    this.view.contentDOM.setAttribute("aria-invalid", String(diagnostics.some((each) => each.severity === "error")));
  }

  /** Put the cursor where an error is. */
  select(diagnostic) {
    const [from, to] = [[diagnostic.line, diagnostic.column], [diagnostic.end_line, diagnostic.end_column]].map((at) => offsetOf(this.value, ...at));
    this.view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
    this.focus();
  }
}

const completing = (view) => view.dom.querySelector(".cm-tooltip-autocomplete") !== null;

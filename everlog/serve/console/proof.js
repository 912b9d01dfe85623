// Drawings of proofs: the fact at the top, its premises below, base facts at the bottom.

import { post } from "./api.js";
import { byId, element, onClick, onSubmit, svg, tell } from "./dom.js";
import { Editor } from "./editor.js";
import { showDiagnostics, showError } from "./mistakes.js";
import { onShow, show } from "./tabs.js";
import { asOfParameter, onWhen } from "./when.js";

const MOST = 300; // boxes
const FACT = /^[?A-Za-z_][?\w.]*\(.*\)$/s;
const LETTER = 7.9;
const SMALL = 6.8;
const [HIGH, DOWN, BETWEEN] = [46, 40, 18];

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** What an aggregate is of: some of its facts, and how many more there are. */
function samples(node) {
  const found = node.samples ?? [];
  const more = (node.matches ?? 0) - found.length;
  const boxOf = (label, under) => ({ node: { fact: under ? label : undefined, kind: "match", children: [] }, label: shortened(label, 44), under, wide: Math.max(Math.min(label.length, 44), 6) * LETTER + 24, children: [] });
  return [...found.map((text) => boxOf(text, "match")), ...(more > 0 && found.length ? [boxOf(`… and ${more} more`, "")] : [])];
}

/** Boxes of a tree: a fact that is used twice is unfolded once. */
function boxes(proof) {
  const unfolded = new Set();
  let number = 0;
  const box = (id) => {
    const node = proof.nodes[id];
    const again = unfolded.has(id) && node.children.length > 0;
    const cut = !again && number > MOST && node.children.length > 0;
    unfolded.add(id);
    number += 1;
    const label = shortened(node.fact ?? node.condition ?? node.text ?? "", 44);
    const matches = node.matches === undefined ? "" : ` of ${node.matches} match${node.matches === 1 ? "" : "es"}`;
    const reason = node.rule ? node.rule.name : (node.reason ?? node.kind ?? "") + matches;
    const under = shortened(again ? `${reason}, as shown` : cut ? `${reason}, …` : reason, 40);
    const wide = Math.max(label.length * LETTER, under.length * SMALL) + 24;
    const children = again || cut ? [] : [...node.children.map(box), ...samples(node)];
    return { node, label, under, wide, cut, children };
  };
  return box(proof.root);
}

/** How far a tree reaches to both sides of the middle of its root, level by level; children get their places. */
function spread(box) {
  const reach = [[-box.wide / 2, box.wide / 2]];
  const below = [];
  box.children.forEach((child, n) => {
    const own = spread(child);
    child.at = n === 0 ? 0 : Math.max(...own.map(([left], level) => (level in below ? below[level][1] + BETWEEN - left : -Infinity)));
    own.forEach(([left, right], level) => {
      below[level] = [Math.min(below[level]?.[0] ?? Infinity, child.at + left), child.at + right];
    });
  });
  const middle = box.children.length ? (box.children[0].at + box.children.at(-1).at) / 2 : 0;
  for (const child of box.children) child.at -= middle;
  return reach.concat(below.map(([left, right]) => [left - middle, right - middle]));
}

/** The fact on top, and what it follows from side by side below it. */
function asTree(root) {
  const reach = spread(root);
  const left = Math.min(...reach.map(([from]) => from));
  const all = [];
  const put = (box, middle, depth) => {
    Object.assign(box, { x: middle - box.wide / 2, y: depth * (HIGH + DOWN) });
    all.push(box);
    for (const child of box.children) put(child, middle + child.at, depth + 1);
  };
  put(root, -left, 0);
  const branch = (box, child) => {
    const [x1, y1, x2, y2] = [box.x + box.wide / 2, box.y + HIGH, child.x + child.wide / 2, child.y];
    return `M${x1} ${y1}C${x1} ${y1 + 20} ${x2} ${y2 - 20} ${x2} ${y2}`;
  };
  return { all, branch, width: Math.max(...reach.map(([, to]) => to)) - left };
}

/** Where that is too wide: one below the other, indented, as folders are shown. */
function asList(root, room) {
  const all = [];
  const put = (box, depth) => {
    Object.assign(box, { depth, y: all.length * (HIGH + 10) });
    all.push(box);
    for (const child of box.children) put(child, depth + 1);
  };
  put(root, 0);
  const deepest = Math.max(...all.map((box) => box.depth), 1);
  const widest = Math.max(...all.map((box) => box.wide));
  const indent = Math.max(8, Math.min(28, (room - widest) / deepest));
  for (const box of all) box.x = box.depth * indent;
  const branch = (box, child) => {
    const [x, y] = [box.x + indent / 2, child.y + HIGH / 2];
    return `M${x} ${box.y + HIGH}V${y - 6}Q${x} ${y} ${x + 6} ${y}H${child.x}`;
  };
  return { all, branch, width: Math.max(...all.map((box) => box.x + box.wide)) };
}

export function drawn(proof, room) {
  const root = boxes(proof);
  const tree = asTree(root);
  const { all, branch, width: wide } = tree.width + 4 <= room ? tree : asList(root, room);
  const width = wide + 4;
  const height = Math.max(...all.map((box) => box.y)) + HIGH + 4;
  const picture = svg("svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, role: "group", "aria-label": `Proof of ${root.label}` });
  for (const box of all) for (const child of box.children) picture.append(svg("path", { class: "branch", d: branch(box, child) }));
  for (const box of all) {
    const middle = box.x + box.wide / 2;
    const kind = box === root ? "root" : box.node.reason === "given" || box.node.kind ? "given" : "derived";
    const chosen = () => choose(box);
    const onkeydown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), chosen());
    picture.append(
      svg(
        "g",
        { class: kind, tabindex: 0, role: "button", "aria-label": `${box.label}, ${box.under}`, onclick: chosen, onkeydown },
        svg("title", {}, box.node.rule ? `${box.node.fact}: ${box.node.rule.text}` : box.label),
        svg("rect", { class: "box", x: box.x, y: box.y, width: box.wide, height: HIGH, rx: 7 }),
        svg("text", { x: middle, y: box.y + 19, "text-anchor": "middle" }, box.label),
        svg("text", { class: "under", x: middle, y: box.y + 36, "text-anchor": "middle" }, box.under),
      ),
    );
  }
  return picture;
}

function attempts(found) {
  const items = found.attempts.map((attempt) => {
    const holds = attempt.holds.length ? `${attempt.holds.join(", ")} hold${attempt.holds.length > 1 ? "" : "s"}; ` : "";
    return element("li", {}, element("code", {}, `${attempt.rule.name}  ${attempt.rule.text}`), element("p", {}, `${holds}${attempt.stop}`));
  });
  const remarks = found.remarks.map((remark) => element("li", {}, remark));
  return element("ul", { class: "plain" }, ...items, ...remarks);
}

/** The rule of a box with the values of its variables, the value of an aggregate, and ways on. */
function choose({ node, label, cut }) {
  const box = byId("proof-step");
  const facts = [];
  const fact = node.fact ?? "";
  if (node.rule) {
    facts.push(["Rule", element("code", {}, `${node.rule.name}  ${node.rule.text}`)], ["At", `${node.rule.file}, line ${node.rule.line}`]);
    const values = Object.entries(node.binding ?? {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
    if (values.length) facts.push(["With", element("code", {}, values.join(", "))]);
  } else if (node.matches !== undefined) facts.push(["Value", element("code", {}, node.text)], ["Of", `${node.matches} match${node.matches === 1 ? "" : "es"}`]);
  else facts.push(["It is", node.reason ?? node.kind ?? ""]);
  const list = facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  const go = FACT.test(fact) ? element("button", { type: "button", class: "small", onclick: () => open(fact) }, cut ? "Show the rest" : "Why this fact") : null;
  box.replaceChildren(element("code", {}, fact || label), element("dl", { class: "facts" }, ...list), ...(go ? [go] : []));
  box.hidden = false;
}

let editor = null;
let shown = null; // the current proof, if any

/** Show the box, and in words what it has. */
function say(text) {
  byId("proof").hidden = byId("proof-words").hidden = false;
  byId("no-proof").hidden = true;
  byId("proof-text").textContent = text;
}

/** As wide as there is room for; again, when there is more or less of it. */
function draw() {
  const box = byId("proof");
  const style = getComputedStyle(box);
  const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  if (shown && room > 0 && shown.room !== room) {
    shown.room = room;
    box.replaceChildren(drawn(shown.proof, room));
  }
}

function hide() {
  shown = null;
  byId("proof").replaceChildren();
  byId("proof").hidden = byId("proof-words").hidden = byId("proof-step").hidden = true;
  showDiagnostics("why-mistakes", editor, []);
  tell("why-told", "");
}

async function why() {
  hide();
  try {
    const { proof, text, step } = await post("/why", { fact: editor.value, ...asOfParameter() });
    shown = { proof, room: null };
    say(text);
    draw();
    tell("why-told", `${proof.nodes[proof.root].fact} holds, after step ${step}`);
  } catch (error) {
    showError("why-mistakes", editor, error);
  }
}

async function whyNot() {
  hide();
  try {
    const found = await post("/why-not", { fact: editor.value, ...asOfParameter() });
    byId("proof").replaceChildren(attempts(found.why_not));
    say(found.text);
    const holds = found.why_not.present ? "holds" : "does not hold";
    tell("why-told", `${found.why_not.fact} ${holds}, after step ${found.step}`);
  } catch (error) {
    showError("why-mistakes", editor, error);
  }
}

/** Show why a fact holds, and name it in the address. */
function open(fact) {
  editor.value = fact;
  asked = fact;
  show("why", { fact });
  return why();
}

let asked = null; // the fact that the address names

export function setUpProofs() {
  editor = new Editor(byId("fact"), { labelled: "fact-label", hint: "path(1, 3)", one: true, submit: () => byId("why-form").requestSubmit() });
  new ResizeObserver(draw).observe(byId("proof"));
  onSubmit("why-form", () => open(editor.value));
  onClick("ask-why-not", whyNot);
  document.addEventListener("why", ({ detail }) => open(detail));
  onWhen(() => shown && why());
  onShow("why", (address) => {
    draw();
    if (address.has("fact") && address.get("fact") !== asked) {
      asked = address.get("fact");
      editor.value = asked;
      why();
    }
  });
}

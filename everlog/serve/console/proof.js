// Proofs, drawn: the fact on top, below each fact what it follows from, given facts at the bottom.

import { post } from "./api.js";
import { byId, element, onSubmit, svg, tell } from "./dom.js";

const MOST = 300; // boxes
const LETTER = 7.9;
const SMALL = 6.8;
const [HIGH, DOWN, BETWEEN] = [46, 40, 18];

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

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
    const reason = node.rule ? node.rule.name : node.reason ?? node.kind ?? "";
    const under = shortened(again ? `${reason}, as shown` : cut ? `${reason}, …` : reason, 40);
    const wide = Math.max(label.length * LETTER, under.length * SMALL) + 24;
    return { node, label, under, wide, children: again || cut ? [] : node.children.map(box) };
  };
  return box(proof.root);
}

function measure(box) {
  const below = box.children.reduce((sum, child) => sum + measure(child) + BETWEEN, -BETWEEN);
  box.room = Math.max(box.wide, below);
  return box.room;
}

function place(box, left, depth, out) {
  box.x = left + (box.room - box.wide) / 2;
  box.y = depth * (HIGH + DOWN);
  out.push(box);
  const total = box.children.reduce((sum, child) => sum + child.room + BETWEEN, -BETWEEN);
  let at = left + (box.room - Math.max(total, 0)) / 2;
  for (const child of box.children) {
    place(child, at, depth + 1, out);
    at += child.room + BETWEEN;
  }
  return out;
}

export function drawn(proof) {
  const root = boxes(proof);
  measure(root);
  const all = place(root, 0, 0, []);
  const width = root.room + 4;
  const height = Math.max(...all.map((box) => box.y)) + HIGH + 4;
  const picture = svg("svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, role: "img", "aria-label": `Proof of ${root.label}` });
  for (const box of all)
    for (const child of box.children) {
      const [x1, y1, x2, y2] = [box.x + box.wide / 2, box.y + HIGH, child.x + child.wide / 2, child.y];
      picture.append(svg("path", { class: "branch", d: `M${x1} ${y1}C${x1} ${y1 + 20} ${x2} ${y2 - 20} ${x2} ${y2}` }));
    }
  for (const box of all) {
    const middle = box.x + box.wide / 2;
    const kind = box === root ? "root" : box.node.reason === "given" ? "given" : "derived";
    picture.append(
      svg(
        "g",
        { class: kind },
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

function show(content, text) {
  byId("proof").replaceChildren(content);
  byId("proof").hidden = byId("proof-words").hidden = false;
  byId("proof-text").textContent = text;
}

function hide() {
  byId("proof").hidden = byId("proof-words").hidden = true;
}

async function why() {
  hide();
  const fact = byId("fact").value;
  const { proof, text } = await post("/why", { fact });
  show(drawn(proof), text);
  tell("why-told", `${proof.nodes[proof.root].fact} holds`);
}

async function whyNot() {
  hide();
  const fact = byId("fact").value;
  const found = await post("/why-not", { fact });
  show(attempts(found.why_not), found.text);
  tell("why-told", found.why_not.present ? `${found.why_not.fact} holds` : `${found.why_not.fact} does not hold`);
}

export function setUpProofs() {
  onSubmit("why-form", "why-told", why);
  byId("ask-why-not").addEventListener("click", () => whyNot().catch((error) => tell("why-told", error.message)));
  document.addEventListener("why", ({ detail }) => {
    byId("fact").value = detail;
    byId("why").scrollIntoView();
    byId("fact").focus();
    why().catch((error) => tell("why-told", error.message));
  });
}

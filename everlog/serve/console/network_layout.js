// A worker that lays out a graph: edges pull their ends together, nodes push each other apart.
//
// Pushes of far nodes are taken together (Barnes and Hut, Nature 324, 1986): the plane is divided
// into quarters again and again, and a quarter that is small from where a node stands counts as one
// heavy node.  A round costs n log n.  Rounds get calmer, and each one that is sent can be drawn.

const ROUNDS = 220;
const NEAR = 0.9; // size of a quarter by its distance, below which it counts as one

onmessage = ({ data: { id, count, sources, targets } }) => {
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const degree = new Float64Array(count);
  for (let n = 0; n < count; n += 1) {
    const turn = n * 2.399963; // the golden angle: evenly spread on a disc
    x[n] = Math.sqrt(n + 0.5) * Math.cos(turn) * 30;
    y[n] = Math.sqrt(n + 0.5) * Math.sin(turn) * 30;
  }
  for (let n = 0; n < sources.length; n += 1) {
    degree[sources[n]] += 1;
    degree[targets[n]] += 1;
  }
  const speedX = new Float64Array(count);
  const speedY = new Float64Array(count);
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = 1 - round / ROUNDS;
    push(x, y, speedX, speedY, heat);
    pull(x, y, speedX, speedY, sources, targets, degree, heat);
    for (let n = 0; n < count; n += 1) {
      speedX[n] = Math.max(-60, Math.min(60, (speedX[n] - x[n] * 0.012 * heat) * 0.62));
      speedY[n] = Math.max(-60, Math.min(60, (speedY[n] - y[n] * 0.012 * heat) * 0.62));
      x[n] += speedX[n];
      y[n] += speedY[n];
    }
    if (round % 20 === 19 || round === ROUNDS - 1) postMessage({ id, x: Float32Array.from(x), y: Float32Array.from(y), done: round === ROUNDS - 1 });
  }
};

function pull(x, y, speedX, speedY, sources, targets, degree, heat) {
  for (let n = 0; n < sources.length; n += 1) {
    const [a, b] = [sources[n], targets[n]];
    if (a === b) continue;
    const [dx, dy] = [x[b] - x[a] || 1e-3, y[b] - y[a] || 1e-3];
    const far = Math.hypot(dx, dy);
    const force = (((far - 46) / far) * heat * 0.7) / Math.min(degree[a], degree[b]);
    const part = degree[b] / (degree[a] + degree[b]); // the one with fewer edges moves more
    speedX[a] += dx * force * part;
    speedY[a] += dy * force * part;
    speedX[b] -= dx * force * (1 - part);
    speedY[b] -= dy * force * (1 - part);
  }
}

function push(x, y, speedX, speedY, heat) {
  let [low, high] = [Infinity, -Infinity];
  for (let n = 0; n < x.length; n += 1) {
    low = Math.min(low, x[n], y[n]);
    high = Math.max(high, x[n], y[n]);
  }
  const root = quarter(low, low, Math.max(high - low, 1));
  for (let n = 0; n < x.length; n += 1) insert(root, x, y, n, 0);
  for (let n = 0; n < x.length; n += 1) {
    const stack = [root];
    while (stack.length) {
      const part = stack.pop();
      if (part.mass === 0 || part.only === n) continue;
      let [dx, dy] = [x[n] - part.sumX / part.mass, y[n] - part.sumY / part.mass];
      if (dx === 0 && dy === 0) dx = (n % 7) - 3.5;
      const square = dx * dx + dy * dy;
      if (part.parts !== null && part.size * part.size > NEAR * NEAR * square) {
        for (const each of part.parts) if (each) stack.push(each);
      } else {
        const force = (part.mass * 520 * heat) / Math.max(square, 30);
        speedX[n] += (dx / Math.sqrt(Math.max(square, 1))) * Math.min(force, 40);
        speedY[n] += (dy / Math.sqrt(Math.max(square, 1))) * Math.min(force, 40);
      }
    }
  }
}

const quarter = (left, top, size) => ({ left, top, size, mass: 0, sumX: 0, sumY: 0, only: -1, parts: null });

function insert(part, x, y, n, depth) {
  part.mass += 1;
  part.sumX += x[n];
  part.sumY += y[n];
  if (part.mass === 1) {
    part.only = n;
    return;
  }
  if (depth > 24) return; // at the same place
  if (part.parts === null) {
    part.parts = [null, null, null, null];
    const before = part.only;
    part.only = -1;
    below(part, x, y, before, depth);
  }
  below(part, x, y, n, depth);
}

function below(part, x, y, n, depth) {
  const half = part.size / 2;
  const [right, down] = [x[n] >= part.left + half, y[n] >= part.top + half];
  const place = (right ? 1 : 0) + (down ? 2 : 0);
  part.parts[place] ??= quarter(part.left + (right ? half : 0), part.top + (down ? half : 0), half);
  insert(part.parts[place], x, y, n, depth + 1);
}

// Makes everlog/serve/console/codemirror.js, with the licences of all packages that are in it.
// The bundle is committed: an installation needs no Node.  `npm ci && npm run build` makes it again.

import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../../everlog/serve/console");

const made = await build({
  absWorkingDir: here,
  entryPoints: ["parts.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  outfile: join(out, "codemirror.js"),
  banner: { js: "// CodeMirror 6, bundled by web/codemirror/bundle.mjs; licences: codemirror.LICENSE.txt" },
  metafile: true,
});

const packages = new Set();
for (const path of Object.keys(made.metafile.inputs)) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const texts = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no text of its licence`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(out, "codemirror.LICENSE.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));

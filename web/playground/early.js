// Python starts while the rest of the page is still loading.

import { Engine } from "./engine.js";

export const began = performance.now();
export const engine = new Engine();

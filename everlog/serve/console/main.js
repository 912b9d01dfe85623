// The workbench of a service.

import { begin } from "./workbench.js";

begin();

// Compile the modules in a zip by the Python of Pyodide: they start sooner than their sources.

import { readFileSync, writeFileSync } from "node:fs";
import { loadPyodide } from "pyodide";

const [, , archive] = process.argv;
const python = await loadPyodide();
python.FS.writeFile("/in.zip", readFileSync(archive));
python.runPython(`
import compileall, pathlib, py_compile, shutil, zipfile
shutil.unpack_archive("/in.zip", "/modules")
root = pathlib.Path("/modules")
with zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path in sorted(root.rglob("*")):
        if path.suffix == ".py":
            made = path.with_suffix(".pyc")
            py_compile.compile(str(path), str(made), dfile=str(path.relative_to(root)), doraise=True,
                               invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
            archive.write(made, made.relative_to(root))
        elif path.is_file() and path.suffix != ".pyc":
            archive.write(path, path.relative_to(root))
`);
writeFileSync(archive, python.FS.readFile("/out.zip"));

"""Neovim itself, headless, with the configuration of editors/neovim: every feature by its keys."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everlog.dsl.keywords import DIRECTIVES, KEYWORDS

NEOVIM = Path(__file__).parent.parent.parent / "editors" / "neovim"
pytestmark = pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")

MAIN = """\
.include "lib.dl"
// Which place reaches which.
// It is recursive.
.decl path(x:number, y:number)
path(x, y) :- road(x, y).
path(x, z) :- path(x, y), road(y, z).
// path(1, 3)
"""
LIB = "// A road, one way.\n.decl road(from:number, to:number)\nroad(1, 2).\nroad(2, 3).\n"

# Functions for the scripts: requests through Neovim's own client, and waiting.
TOOLS = """
local out = {}
local function wait(what, found)
  if not vim.wait(60000, found, 20) then error('never came: ' .. what) end
end
local function feed(keys) vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), 'x', false) end
local function go(line, column) vim.api.nvim_win_set_cursor(0, { line, column }) end
local function marks(name)
  return vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace(name), 0, -1, { details = true })
end
local function codes()
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(0)) do table.insert(found, each.code or each.user_data.lsp.code) end
  return found
end
local function lines() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end
local function floating()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\\n'), window
    end
  end
end
local function float(what)
  wait(what, floating)
  local text, window = floating()
  vim.api.nvim_win_close(window, true)
  return text
end
"""


def configured() -> str:
    """The lines that the README tells a user to write."""
    found = re.search(r"```lua\n(.*?)```", NEOVIM.joinpath("README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    lines = found[1].replace("/path/to/everlog/editors/neovim", str(NEOVIM))
    command = json.dumps([sys.executable, "-P", "-m", "everlog", "lsp"]).strip("[]")
    return lines.replace("setup{}", f"setup{{ cmd = {{ {command} }}, pause = 20 }}")


def in_neovim(folder: Path, script: str) -> Any:
    """What a script puts into `out`, in a Neovim that has main.dl open."""
    (folder / "main.dl").write_text(MAIN, encoding="utf-8")
    (folder / "lib.dl").write_text(LIB, encoding="utf-8")
    (folder / "init.lua").write_text(configured(), encoding="utf-8")
    report = f"vim.fn.writefile({{ vim.json.encode(out) }}, {json.dumps(str(folder / 'out.json'))})"
    body = f"{TOOLS}\nlocal ok, problem = pcall(function()\n{script}\nend)\nif not ok then out.problem = problem end\n{report}\n"
    (folder / "script.lua").write_text(body, encoding="utf-8")
    command = ["nvim", "--headless", "-u", str(folder / "init.lua"), "-n", "-i", "NONE", str(folder / "main.dl")]
    done = subprocess.run(
        [*command, "-c", f"luafile {folder / 'script.lua'}", "-c", "qa!"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=folder,
        check=False,
    )
    assert (folder / "out.json").exists(), done.stderr
    out = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert "problem" not in out, (out, done.stderr)
    return out


def test_errors_fixes_costs_colours_folds_and_lenses(tmp_path: Path) -> None:
    out = in_neovim(
        tmp_path,
        """
        out.filetype = vim.bo.filetype
        wait('hints', function() return #marks('everlog') > 0 end)
        out.hints = {}
        for _, mark in ipairs(marks('everlog')) do
          table.insert(out.hints, { mark[2] + 1, mark[4].virt_text[1][1] })
        end
        wait('colours', function() return #marks('everlog-colours') > 10 end)
        out.colour = marks('everlog-colours')[2][4].hl_group
        wait('folds', function() return vim.fn.foldlevel(2) == 1 end)
        out.folds = { vim.fn.foldlevel(1), vim.fn.foldlevel(2), vim.fn.foldlevel(3), vim.fn.foldlevel(4) }
        wait('lenses', function() return #vim.lsp.codelens.get(0) > 0 end)
        out.lenses = vim.tbl_map(function(lens) return lens.command.title end, vim.lsp.codelens.get(0))

        go(6, 0)
        feed('opath(x, x) :- rod(x, x).<Esc>')
        wait('an error', function() return #vim.diagnostic.get(0) > 0 end)
        out.codes = codes()
        vim.ui.select = function(items, _, chosen) out.fixes = vim.tbl_map(function(each) return each[2].title end, items); chosen(items[1]) end
        go(7, 15)
        vim.lsp.buf.code_action()
        wait('the fix', function() return lines()[7] == 'path(x, x) :- road(x, x).' end)
        wait('no error', function() return #vim.diagnostic.get(0) == 0 end)
        """,
    )
    assert out["filetype"] == "everlog"
    assert out["hints"] == [[5, " ⟨recursive: follows the change⟩"], [6, " ⟨recursive: follows the change⟩"]]
    assert out["colour"] == "Structure"
    assert out["folds"] == [0, 1, 1, 0]
    assert out["lenses"] == ["▶ run path", "explain path#1", "explain path#2"]
    assert out["codes"] == ["DL050"]
    assert out["fixes"] == ["Change to `road`"]


def test_hover_names_completion_and_formatting(tmp_path: Path) -> None:
    out = in_neovim(
        tmp_path,
        """
        wait('the server', function() return #marks('everlog') > 0 end)
        go(5, 16); feed('K'); out.hover = float('hover')
        go(5, 16); feed('gd')
        wait('lib.dl', function() return vim.fn.expand('%:t') == 'lib.dl' end)
        out.definition = vim.api.nvim_win_get_cursor(0)
        vim.cmd('edit main.dl')
        go(4, 7); feed('gi')
        wait('rules', function() return #vim.fn.getqflist() == 2 end)
        vim.cmd('cclose')
        go(4, 7); feed('gr')
        wait('references', function() return #vim.fn.getqflist() == 4 end)
        vim.cmd('cclose')
        go(4, 7); feed('gO')
        wait('the outline', function() return #vim.fn.getqflist() > 4 end)
        vim.cmd('cclose')

        go(6, 0); feed('opath(x, x) :- ro')
        vim.api.nvim_win_set_cursor(0, { 7, 16 })
        local params = vim.lsp.util.make_position_params()
        params.position.character = 16
        local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', params, 60000)
        for _, each in pairs(answers) do
          out.completion = vim.tbl_map(function(item) return item.label end, each.result.items)
        end
        vim.api.nvim_buf_set_lines(0, 6, 7, false, { 'path(x, x) :- road(x, x).' })
        go(7, 22); vim.lsp.buf.signature_help(); out.signature = float('signature')

        go(5, 16); vim.lsp.buf.rename('street')
        wait('renamed', function() return lines()[5] == 'path(x, y) :- street(x, y).' end)
        vim.cmd('buffer lib.dl'); out.renamed = lines()
        vim.cmd('buffer main.dl')
        vim.api.nvim_buf_set_lines(0, 6, 7, false, { 'path(x,x):-street(x,x).' })
        require('everlog').format()
        out.formatted = lines()[7]
        """,
    )
    assert "A road, one way." in out["hover"]
    assert out["definition"] == [2, 6]
    assert "road" in out["completion"]
    assert "road(from: number, to: number)" in out["signature"]
    assert out["renamed"][1:3] == [".decl street(from:number, to:number)", "street(1, 2)."]
    assert out["formatted"] == "path(x, x) :- street(x, x)."


def test_lenses_and_actions_open_their_answer(tmp_path: Path) -> None:
    out = in_neovim(
        tmp_path,
        """
        wait('lenses', function() return #vim.lsp.codelens.get(0) > 0 end)
        local function answer(what)
          wait(what, function() return vim.api.nvim_buf_get_name(0):match('^everlog://') end)
          local text = table.concat(lines(), '\\n')
          vim.cmd('close')
          return text
        end
        vim.ui.select = function(items, _, chosen) chosen(items[1]) end
        go(5, 0); vim.lsp.codelens.run(); out.run = answer('rows')
        go(6, 0); vim.lsp.codelens.run(); out.explain = answer('an explanation')
        go(7, 8); vim.lsp.buf.code_action(); out.why = answer('a proof')
        """,
    )
    assert out["run"] == "path: 3 facts\n\npath(1, 2)\npath(1, 3)\npath(2, 3)"
    assert out["explain"].startswith("path#2  path(x, z) :- path(x, y), road(y, z).")
    assert out["why"].startswith("path(1, 3)   path#2 at ")


def test_the_syntax_file_has_all_words_of_the_language() -> None:
    text = NEOVIM.joinpath("syntax", "everlog.vim").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", text))
    assert set(KEYWORDS) - words == set()
    assert {word.removeprefix(".") for word in DIRECTIVES} - words == set()

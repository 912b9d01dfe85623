-- everlog's language server in Neovim (0.7 or newer), without other plugins.
--
--   require('everlog').setup{}
--
-- Neovim does most by itself: diagnostics, hover, definition, references, rename, completion,
-- signatures, symbols, formatting, code actions, lenses.  What older versions lack is added here:
-- costs beside rules, colours by meaning, folds, and a window for the answers of lenses.

local M = {}

M.defaults = {
  cmd = { 'everlog', 'lsp' }, -- add flags here: { 'everlog', 'lsp', '--db', 'shop.db' }
  hints = true, -- costs beside rules
  colours = true, -- colours by meaning
  lenses = true, -- run and explain above rules
  folds = true,
  keys = true, -- the keys of editors/neovim/README.md
  pause = 300, -- milliseconds after a change before hints, colours and lenses follow
  on_attach = nil, -- a function of (client, buffer)
}
M.options = M.defaults

local space = vim.api.nvim_create_namespace('everlog')
local paint = vim.api.nvim_create_namespace('everlog-colours')

-- the group that colours each kind of token, in the order of the server's legend
local groups = {
  keyword = 'Keyword', number = 'Number', string = 'String', operator = 'Operator',
  ['function'] = 'Function', variable = 'Identifier', property = 'Identifier', struct = 'Structure',
  type = 'Type', class = 'Type', namespace = 'Include', typeParameter = 'Type',
}

local function text_document(buffer)
  return { uri = vim.uri_from_bufnr(buffer) }
end

local function byte_column(buffer, client, position)
  local line = vim.api.nvim_buf_get_lines(buffer, position.line, position.line + 1, false)[1] or ''
  local ok, column = pcall(vim.str_byteindex, line, position.character, client.offset_encoding == 'utf-16')
  return ok and column or #line
end

-- ── an answer in a window of its own ─────────────────────────────────────────────────────────

function M.show(title, text)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  vim.api.nvim_buf_set_option(buffer, 'modifiable', false)
  vim.api.nvim_buf_set_option(buffer, 'bufhidden', 'wipe')
  pcall(vim.api.nvim_buf_set_name, buffer, 'everlog://' .. title .. '#' .. buffer)
  vim.cmd('botright split')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.api.nvim_win_set_height(0, math.min(15, vim.api.nvim_buf_line_count(buffer) + 1))
  return buffer
end

function M.ask(command, arguments)
  for _, client in pairs(vim.lsp.get_active_clients()) do
    if client.name == 'everlog' then
      local params = { command = command, arguments = arguments }
      client.request('workspace/executeCommand', params, function(problem, answer)
        M.show(command, problem and problem.message or answer or '')
      end, 0)
      return
    end
  end
end

for _, name in ipairs({ 'everlog.run', 'everlog.explain', 'everlog.why' }) do
  vim.lsp.commands[name] = function(command)
    M.ask(command.command, command.arguments)
  end
end

-- ── costs beside rules, colours, folds ───────────────────────────────────────────────────────

local function put_hints(buffer, client, hints)
  vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  local lines = vim.api.nvim_buf_line_count(buffer)
  local texts = {}
  for _, hint in ipairs(hints or {}) do
    local row = hint.position.line
    if row < lines then
      texts[row] = texts[row] or {}
      table.insert(texts[row], { ' ' .. hint.label, 'Comment' })
    end
  end
  for row, chunks in pairs(texts) do
    vim.api.nvim_buf_set_extmark(buffer, space, row, 0, { virt_text = chunks, virt_text_pos = 'eol' })
  end
end

local function put_colours(buffer, client, tokens)
  vim.api.nvim_buf_clear_namespace(buffer, paint, 0, -1)
  local legend = client.server_capabilities.semanticTokensProvider.legend.tokenTypes
  local data, row, start = (tokens or {}).data or {}, 0, 0
  for at = 1, #data, 5 do
    if data[at] > 0 then
      row, start = row + data[at], 0
    end
    start = start + data[at + 1]
    local first = byte_column(buffer, client, { line = row, character = start })
    local last = byte_column(buffer, client, { line = row, character = start + data[at + 2] })
    local group = groups[legend[data[at + 3] + 1]]
    pcall(vim.api.nvim_buf_set_extmark, buffer, paint, row, first, { end_col = last, hl_group = group })
  end
end

local levels = {} -- of folds, per buffer and line

function M.fold_level(line)
  local known = levels[vim.api.nvim_get_current_buf()]
  return known and known[line] or 0
end

local function put_folds(buffer, ranges)
  local found = {}
  for _, range in ipairs(ranges or {}) do
    for line = range.startLine + 1, range.endLine + 1 do
      found[line] = (found[line] or 0) + 1
    end
  end
  levels[buffer] = found
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_call(window, function()
      vim.wo.foldexpr = "v:lua.require'everlog'.fold_level(v:lnum)"
      vim.wo.foldmethod = 'expr'
      vim.wo.foldlevel = 99
    end)
  end
end

function M.refresh(client, buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local params = { textDocument = text_document(buffer) }
  local function ask(method, more, use)
    client.request(method, vim.tbl_extend('force', params, more), function(problem, answer)
      if not problem and vim.api.nvim_buf_is_loaded(buffer) then
        use(answer)
      end
    end, buffer)
  end
  if M.options.hints then
    local last = { line = vim.api.nvim_buf_line_count(buffer), character = 0 }
    local range = { start = { line = 0, character = 0 }, ['end'] = last }
    ask('textDocument/inlayHint', { range = range }, function(answer) put_hints(buffer, client, answer) end)
  end
  if M.options.colours then
    ask('textDocument/semanticTokens/full', {}, function(answer) put_colours(buffer, client, answer) end)
  end
  if M.options.folds then
    ask('textDocument/foldingRange', {}, function(answer) put_folds(buffer, answer) end)
  end
  if M.options.lenses then
    ask('textDocument/codeLens', {}, function(answer)
      vim.lsp.codelens.save(answer, buffer, client.id)
      vim.lsp.codelens.display(answer, buffer, client.id)
    end)
  end
end

local function refresh_later(client, buffer)
  local timer = vim.loop.new_timer()
  local turn = vim.b[buffer].everlog_turn or 0
  vim.b[buffer].everlog_turn = turn + 1
  timer:start(M.options.pause, 0, vim.schedule_wrap(function()
    timer:close()
    if vim.api.nvim_buf_is_valid(buffer) and vim.b[buffer].everlog_turn == turn + 1 then
      M.refresh(client, buffer)
    end
  end))
end

-- ── keys and the start ───────────────────────────────────────────────────────────────────────

local function add_keys(buffer)
  local function key(keys, action, what)
    vim.keymap.set('n', keys, action, { buffer = buffer, desc = what })
  end
  key('K', vim.lsp.buf.hover, 'types, class, cost and comment')
  key('gd', vim.lsp.buf.definition, 'the declaration')
  key('gi', vim.lsp.buf.implementation, 'the rules of a relation')
  key('gr', vim.lsp.buf.references, 'all places of a name')
  key('gO', vim.lsp.buf.document_symbol, 'the outline')
  key('<leader>rn', vim.lsp.buf.rename, 'rename')
  key('<leader>ca', vim.lsp.buf.code_action, 'fixes, and why of a fact')
  key('<leader>cl', vim.lsp.codelens.run, 'run or explain')
  key('<leader>f', M.format, 'format')
  key('[d', vim.diagnostic.goto_prev, 'the diagnostic before')
  key(']d', vim.diagnostic.goto_next, 'the next diagnostic')
  vim.keymap.set('i', '<C-k>', vim.lsp.buf.signature_help, { buffer = buffer, desc = 'columns or parameters' })
end

function M.format()
  local format = vim.lsp.buf.format or vim.lsp.buf.formatting_sync -- the first since 0.8
  if format == vim.lsp.buf.format then format({ timeout_ms = 10000 }) else format(nil, 10000) end
end

local function attached(client, buffer)
  vim.api.nvim_buf_set_option(buffer, 'omnifunc', 'v:lua.vim.lsp.omnifunc')
  if M.options.keys then
    add_keys(buffer)
  end
  local group = vim.api.nvim_create_augroup('everlog-' .. buffer, { clear = true })
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'BufEnter', 'BufWritePost' }, {
    group = group, buffer = buffer, callback = function() refresh_later(client, buffer) end,
  })
  M.refresh(client, buffer)
  if M.options.on_attach then
    M.options.on_attach(client, buffer)
  end
end

local running = {} -- root folder → client

function M.start(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local git = vim.fn.finddir('.git', vim.fn.fnamemodify(file, ':p:h') .. ';')
  local root = git ~= '' and vim.fn.fnamemodify(git, ':p:h:h') or vim.fn.fnamemodify(file, ':p:h')
  if not (running[root] and vim.lsp.get_client_by_id(running[root])) then
    running[root] = vim.lsp.start_client({
      name = 'everlog',
      cmd = M.options.cmd,
      root_dir = root,
      workspace_folders = { { uri = vim.uri_from_fname(root), name = root } },
      on_attach = attached,
      on_exit = function() running[root] = nil end,
    })
  end
  if running[root] then
    vim.lsp.buf_attach_client(buffer, running[root])
  end
end

function M.setup(options)
  M.options = vim.tbl_extend('force', M.defaults, options or {})
  vim.api.nvim_create_autocmd('FileType', {
    group = vim.api.nvim_create_augroup('everlog', { clear = true }),
    pattern = 'everlog',
    callback = function(event) M.start(event.buf) end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].filetype == 'everlog' then
      M.start(buffer)
    end
  end
end

return M

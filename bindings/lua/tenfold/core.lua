-- What everything else stands on: the library, errors, the tensor as the garbage collector sees it, and scopes.

local ffi = require("ffi")

ffi.cdef(require("tenfold.declarations"))
ffi.cdef([[
typedef struct tenfold_lua_tensor { tn_tensor *handle; int32_t slot; } tenfold_lua_tensor;
typedef struct tenfold_lua_book { int32_t used, vacant, capacity, pace; } tenfold_lua_book;
]])

local core = { declare = ffi.cdef }

-- ---- errors ---------------------------------------------------------------------------------------------

local Error = { __tostring = function(self) return self.name .. ": " .. self.message end }
Error.__index = Error
core.Error = Error

-- The names of tenfold.h's codes, by their numbers: the library, which knows them too, may be what is missing.
local enums = require("tenfold.enums")
local STATUS, NAMES = enums.status, {}
for word, number in pairs(STATUS) do NAMES[number] = "TN_" .. word:upper() end

-- Raise an error of the library's kind: a table with code, name and message, which prints as text.
local function raise(code, message)
  error(setmetatable({ code = code, name = NAMES[code], message = message }, Error), 0)
end

-- The same by a word, such as "index".
function core.raise(kind, message) raise(STATUS["error_" .. kind], message) end

function core.refuse(...) core.raise("argument", string.format(...)) end

-- ---- the library ----------------------------------------------------------------------------------------

local function load()
  local tried = {}
  local found, location = pcall(require, "tenfold.location")
  for _, path in ipairs({ os.getenv("TENFOLD_LIBRARY") or "", found and location or "", "tenfold" }) do
    if path ~= "" then
      local loaded, library = pcall(ffi.load, path)
      if loaded then return library end
      tried[#tried + 1] = tostring(library)
    end
  end
  core.raise(
    "not_available",
    "libtenfold cannot be loaded: " .. table.concat(tried, "; ") ..
    "\n  help: `tenfold capi build` builds it; TENFOLD_LIBRARY may name the libtenfold.so to load"
  )
end

local C = load()
core.C = C
if C.tn_available() ~= 1 then core.raise("not_available", ffi.string(C.tn_error_message())) end

-- Raise this thread's error. The handle of what was freed is NULL.
local function fail()
  local code, message = tonumber(C.tn_error_code()), ffi.string(C.tn_error_message())
  C.tn_error_clear()
  raise(code == STATUS.ok and STATUS.error_internal or code, (message:gsub(" is NULL$", " was freed before")))
end
core.fail = fail

-- End a scope of the library's after a protected call in it: what that returned, or its error again.
function core.end_scope(scope, succeeded, ...)
  if C.tn_scope_end(scope) ~= 0 then fail() end
  if not succeeded then error((...), 0) end
  return ...
end

-- ---- memory ---------------------------------------------------------------------------------------------

-- The collector's finalizers stop the compiler whenever they run, so tensors have none. They are kept in a weak table
-- instead, and their handles in an array beside it: what a collection took out of the table is freed by `sweep`.
local weak = setmetatable({}, { __mode = "v" })
local witness = setmetatable({ {} }, { __mode = "v" })  -- emptied by every collection
local book = ffi.new("tenfold_lua_book")
local handles, vacant

local function grow()
  local capacity = math.max(1024, 2 * book.capacity)
  local more_handles, more_vacant = ffi.new("tn_tensor *[?]", capacity), ffi.new("int32_t[?]", capacity)
  if handles ~= nil then
    ffi.copy(more_handles, handles, book.capacity * ffi.sizeof("tn_tensor *"))
    ffi.copy(more_vacant, vacant, book.capacity * ffi.sizeof("int32_t"))
  end
  handles, vacant, book.capacity = more_handles, more_vacant, capacity
end
grow()
book.pace = 2048

-- Free what a slot holds, and let it be used again.
local function release(slot)
  local handle = handles[slot]
  handles[slot], vacant[book.vacant], book.vacant = nil, slot, book.vacant + 1
  C.tn_free(handle)
end

local function sweep()
  for slot = 0, book.used - 1 do
    if handles[slot] ~= nil and weak[slot + 1] == nil then release(slot) end
  end
  witness[1] = {}
end

-- A callback from C must never run inside compiled code, so instead of one there is a mark that is looked at whenever
-- a tensor is made. Lua does not see how large tensors are: past the mark everything is collected.
local state = { limit = 256 * 2 ^ 20, mark = 256 * 2 ^ 20, scope = nil, text = 0 }
core.state = state

-- Dead tensors are cold memory: a collection every few thousand of them is cheaper than fresh memory for each, and
-- rarer the more there is for it to walk over. The `text` of the operators, so many kilobytes, is one object.
local function relieve()
  collectgarbage()
  sweep()
  book.pace = math.max(2048, 2 * (book.used - book.vacant), 4 * (collectgarbage("count") - state.text))
  state.mark = math.max(state.limit, 1.5 * tonumber(C.tn_live_bytes()))
end

-- Collect now, and free the tensors that nothing refers to.
function core.collect() relieve() end

-- Those that are left when Lua ends.
core.at_end = newproxy(true)
getmetatable(core.at_end).__gc = function()
  for slot = 0, book.used - 1 do
    if handles[slot] ~= nil then release(slot) end
  end
end

-- The bytes that tensors may hold before the collector is run for their sake.
function core.set_pressure(bytes)
  if type(bytes) ~= "number" or bytes <= 0 then core.refuse("set_pressure: a number of bytes is above 0") end
  state.limit, state.mark = bytes, bytes
end

-- Call a failed function again, if it was memory that it lacked; raise what it says otherwise.
function core.again(f, ...)
  if tonumber(C.tn_error_code()) ~= STATUS.error_memory then fail() end
  relieve()
  local made = f(...)
  if made == nil then fail() end
  return made
end

-- Call a function that makes something, NULL on failure.
function core.made(f, ...)
  local made = f(...)
  if made == nil then return core.again(f, ...) end
  return made
end

-- Call a function that gives a status; once more after collecting, if memory ran out.
function core.check(f, ...)
  if f(...) == 0 then return end
  if tonumber(C.tn_error_code()) ~= STATUS.error_memory then fail() end
  relieve()
  if f(...) ~= 0 then fail() end
end

-- ---- tensors --------------------------------------------------------------------------------------------

-- What tensor.lua and the operators fill in.
core.methods, core.properties, core.operators = {}, {}, {}
local methods, properties, operators = core.methods, core.properties, core.operators

local Tensor = ffi.metatype("tenfold_lua_tensor", {
  __index = function(self, key)
    local method = methods[key]
    if method ~= nil then return method end
    local property = properties[key]
    if property ~= nil then return property(self) end
    return operators.get(self, key)
  end,
  __newindex = function(self, key, value) operators.set(self, key, value) end,
  __add = function(x, y) return operators.add(x, y) end,
  __sub = function(x, y) return operators.sub(x, y) end,
  __mul = function(x, y) return operators.mul(x, y) end,
  __div = function(x, y) return operators.div(x, y) end,
  __mod = function(x, y) return operators.mod(x, y) end,
  __pow = function(x, y) return operators.pow(x, y) end,
  __unm = function(x) return operators.neg(x) end,
  __len = function(x) return operators.len(x) end,
  __tostring = function(x) return operators.text(x) end,
})
core.Tensor = Tensor

-- The tensor of an owned handle, in the scope that is open.
local function own(handle)
  if witness[1] == nil then sweep() end
  if C.tn_live_bytes() > state.mark or (book.vacant == 0 and book.used >= book.pace) then relieve() end
  local slot = book.used
  if book.vacant > 0 then
    book.vacant = book.vacant - 1
    slot = vacant[book.vacant]
  else
    if slot == book.capacity then grow() end
    book.used = slot + 1
  end
  local made = Tensor(handle, slot)
  handles[slot], weak[slot + 1] = handle, made
  local scope = state.scope
  if scope ~= nil then scope[#scope + 1] = made end
  return made
end
core.own = own

function core.own_maybe(handle)
  if handle == nil then return nil end
  return own(handle)
end

local handles_t, list_t = ffi.typeof("tn_tensor *[?]"), ffi.typeof("tn_tensor **[1]")
local count_t, bool_t = ffi.typeof("int64_t[1]"), ffi.typeof("bool[1]")

function core.new_outs(count) return handles_t(count) end
function core.new_list() return list_t(), count_t() end
function core.new_bool() return bool_t() end

-- The tensors of an array that C gave, which is freed.
function core.own_list(outs, count)
  local made, n = {}, tonumber(count[0])
  for i = 0, n - 1 do made[i + 1] = own(C.tn_tensor_share(outs[0][i])) end
  C.tn_free_all(outs[0], n)
  return made
end

-- Free a tensor now. Using it afterwards is an error; freeing it again is not.
function methods.free(self)
  if self.handle ~= nil then
    self.handle, weak[self.slot + 1] = nil, nil
    release(self.slot)
  end
end

local function keep(kept, value)
  if ffi.istype(Tensor, value) then
    kept[#kept + 1] = value
  elseif type(value) == "table" then
    for _, each in pairs(value) do keep(kept, each) end
  end
end

local function leave(outer, made, succeeded, ...)
  state.scope = outer
  local kept, is_kept = {}, {}
  if succeeded then
    for i = 1, select("#", ...) do keep(kept, (select(i, ...))) end
  end
  keep(kept, made.kept)
  for _, each in ipairs(kept) do is_kept[each] = true end
  for _, each in ipairs(made) do
    if not is_kept[each] then
      methods.free(each)
    elseif outer ~= nil then
      outer[#outer + 1] = each
    end
  end
  if not succeeded then error((...), 0) end
  return ...
end

-- Call a function, free every tensor that it made but does not return, and return what it does. Scopes nest.
function core.scope(fn, ...)
  local outer, made = state.scope, { kept = {} }
  state.scope = made
  return leave(outer, made, pcall(fn, ...))
end

-- Let a tensor outlive the scopes that are open.
function core.keep(tensor)
  local scope = state.scope
  if scope ~= nil then scope.kept[#scope.kept + 1] = tensor end
  return tensor
end

-- ---- other handles --------------------------------------------------------------------------------------

-- An object around an owned handle that `free` or the collector lets go.
function core.object(class, handle, free)
  if handle == nil then fail() end
  return setmetatable({ handle = ffi.gc(handle, free), release = free }, class)
end

function core.free_object(self)
  if self.handle ~= nil then
    self.release(ffi.gc(self.handle, nil))
    self.handle = nil
  end
end

-- The handle of an object, which must not be freed.
function core.live(self)
  if self.handle == nil then core.raise("handle", "it was freed before") end
  return self.handle
end

-- The text that a function writes into a buffer.
function core.text(f, ...)
  local arguments = { ... }
  local n = select("#", ...)
  arguments[n + 1], arguments[n + 2] = nil, 0
  local size = tonumber(f(unpack(arguments, 1, n + 2)))
  if size < 0 then fail() end
  local buffer = ffi.new("char[?]", size + 1)
  arguments[n + 1], arguments[n + 2] = buffer, size + 1
  if f(unpack(arguments, 1, n + 2)) < 0 then fail() end
  return ffi.string(buffer, size)
end

return core

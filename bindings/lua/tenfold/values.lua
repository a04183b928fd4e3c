-- Lua's values as libtorch's and back: nil, booleans, numbers, strings, tensors, tables as lists, tuples and dicts.

local ffi = require("ffi")
local core = require("tenfold.convert")

local C, is, fail = core.C, core.is, core.fail
local values = {}

local Tuple = {}
values.Tuple = Tuple

-- Mark an array as a tuple, where a list is not what is meant.
function values.tuple(entries)
  if type(entries) ~= "table" then core.refuse("tuple: the entries are a table") end
  return setmetatable(entries, Tuple)
end

local function owned(value)
  if value == nil then fail() end
  return ffi.gc(value, C.tn_value_free)
end

local function array(entries)
  local made = ffi.new("const tn_value *[?]", #entries + 1)
  for i, each in ipairs(entries) do made[i - 1] = each end
  return made
end

local function all(entries, check)
  for i = 1, #entries do
    if not check(entries[i]) then return false end
  end
  return #entries > 0
end

local function list(entries)
  if all(entries, is.int) then return C.tn_value_int_list(core.convert.ints(entries, 0)) end
  if all(entries, is.number) then return C.tn_value_double_list(core.convert.doubles(entries, 0)) end
  if all(entries, is.tensor) then return C.tn_value_tensor_list(core.convert.tensors(entries)) end
  local made = {}
  for i = 1, #entries do made[i] = values.to(entries[i]) end
  return C.tn_value_list(array(made), #made)
end

local function dict(entries)
  local keys, held = {}, {}
  for key in pairs(entries) do keys[#keys + 1] = key end
  if not all(keys, is.string) then core.refuse("a table is an array, or has only strings as keys") end
  table.sort(keys)
  for i, key in ipairs(keys) do
    keys[i], held[i] = values.to(key), values.to(entries[key])
  end
  return C.tn_value_dict(array(keys), array(held), #keys)
end

-- An owned tn_value. `false` inside a list is a boolean; None there is values.none.
values.none = setmetatable({}, { __tostring = function() return "None" end })

function values.to(x)
  if x == nil or x == values.none then return owned(C.tn_value_none()) end
  if is.tensor(x) then return owned(C.tn_value_tensor(x.handle)) end
  if is.string(x) then return owned(C.tn_value_string(x)) end
  if type(x) == "string" then core.refuse("a string with a zero byte is no value of libtorch's") end
  if is.scalar(x) then return owned(C.tn_value_scalar(core.convert.scalar(x))) end
  if type(x) ~= "table" then core.refuse("a %s is no value of libtorch's", type(x)) end
  if getmetatable(x) == Tuple then
    local made = {}
    for i = 1, #x do made[i] = values.to(x[i]) end
    return owned(C.tn_value_tuple(array(made), #made))
  end
  if #x > 0 or next(x) == nil then return owned(list(x)) end
  return owned(dict(x))
end

local function entries_of(value, at)
  local made = {}
  for i = 1, tonumber(C.tn_value_count(value)) do made[i] = values.from(owned(at(value, i - 1))) end
  return made
end

-- What a tn_value holds: lists and tuples are arrays, dicts are tables by key.
function values.from(value)
  local tag = C.tn_value_tag(value)
  if tag < 0 then fail() end
  if tag == C.TN_TAG_NONE then return nil end
  if tag == C.TN_TAG_TENSOR then
    return core.own(core.made(C.tn_value_to_tensor, value))
  end
  if tag == C.TN_TAG_STRING then return core.text(C.tn_value_to_string, value) end
  if tag == C.TN_TAG_LIST then return entries_of(value, C.tn_value_at) end
  if tag == C.TN_TAG_TUPLE then return values.tuple(entries_of(value, C.tn_value_at)) end
  if tag == C.TN_TAG_DICT then
    local keys, held, made = entries_of(value, C.tn_value_key_at), entries_of(value, C.tn_value_at), {}
    for i, key in ipairs(keys) do made[key] = held[i] end
    return made
  end
  if tag <= C.TN_TAG_BOOL then
    local scalar = ffi.new("tn_scalar[1]")
    if C.tn_value_to_scalar(value, scalar) ~= 0 then fail() end
    return core.from_scalar(scalar[0])
  end
  return core.text(C.tn_value_print, value)
end

-- Push arguments, have `call` replace them by results, and return these.
function values.through_stack(call, ...)
  local stack = C.tn_stack_new()
  if stack == nil then fail() end
  ffi.gc(stack, C.tn_stack_free)
  for i = 1, select("#", ...) do
    if C.tn_stack_push(stack, values.to((select(i, ...)))) ~= 0 then fail() end
  end
  if call(stack) ~= 0 then fail() end
  local n, results = tonumber(C.tn_stack_count(stack)), {}
  for i = 1, n do results[i] = values.from(owned(C.tn_stack_at(stack, i - 1))) end
  C.tn_stack_free(ffi.gc(stack, nil))
  return unpack(results, 1, n)
end

-- Call any operator of libtorch by its full name, such as "aten::add.Tensor".
function values.call(name, ...)
  if not is.string(name) then core.refuse("call: the operator's name is a string without zero bytes") end
  return values.through_stack(function(stack) return C.tn_call(name, stack) end, ...)
end

return values

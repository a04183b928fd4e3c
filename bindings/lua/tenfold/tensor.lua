-- A tensor's own: its properties, what makes it from Lua's values and back, its elements, its operators.

local ffi = require("ffi")
local core = require("tenfold.convert")
local generated = require("tenfold.operators")
local resolve = require("tenfold.resolve")

local C, own, fail, is, methods = core.C, core.own, core.fail, core.is, core.methods
local operators, properties, convert = core.operators, core.properties, core.convert

core.state.text = #generated.sources / 1024

-- Where an operator's source begins and ends, and whether it is a method. `repeat` is a word of Lua's.
local RENAMED = { repeat_ = "repeat" }
local function find(name)
  if type(name) ~= "string" then return nil end
  local _, at = generated.index:find(" " .. (RENAMED[name] or name) .. "=", 1, true)
  if at == nil then return nil end
  local first, last, kind = generated.index:match("^(%d+),(%d+)([^;]*);", at + 1)
  return tonumber(first), tonumber(last), kind == ",method"
end

-- The operators by name, compiled when first used.
local ops = setmetatable({}, {
  __index = function(self, name)
    local first, last = find(name)
    if first == nil then return nil end
    local source = generated.sources:sub(first, last)
    local made = assert(loadstring(generated.prelude .. source, "=tenfold." .. name))(core, resolve)
    rawset(self, name, made)
    return made
  end,
})
local tensor = { ops = ops }

setmetatable(methods, {
  __index = function(self, name)
    local _, _, is_method = find(name)
    if not is_method then return nil end
    local made = ops[name]
    rawset(self, name, made)
    return made
  end,
})

-- ---- properties -----------------------------------------------------------------------------------------

local function shape_of(self, write)
  local rank = tonumber(C.tn_tensor_dim(self.handle))
  if rank < 0 then fail() end
  local sizes = ffi.new("int64_t[?]", rank + 1)
  if write(self.handle, sizes, rank) < 0 then fail() end
  local found = {}
  for i = 1, rank do found[i] = tonumber(sizes[i - 1]) end
  return found
end

function properties.shape(self) return shape_of(self, C.tn_tensor_shape) end
function properties.strides(self) return shape_of(self, C.tn_tensor_strides) end

function properties.dtype(self)
  local code = C.tn_tensor_dtype(self.handle)
  if code < 0 then fail() end
  return ffi.string(C.tn_dtype_name(code))
end

function properties.device(self)
  local device = ffi.new("tn_device")
  if C.tn_tensor_device(self.handle, device) ~= 0 then fail() end
  local kind = core.DEVICE_NAMES[device.type]
  return device.index < 0 and kind or kind .. ":" .. device.index
end

local function truth(found)
  if found < 0 then fail() end
  return found == 1
end

function properties.requires_grad(self) return truth(C.tn_requires_grad(self.handle)) end
function properties.is_leaf(self) return truth(C.tn_is_leaf(self.handle)) end
function properties.grad(self)
  if not truth(C.tn_has_grad(self.handle)) then return nil end
  return own(core.made(C.tn_grad, self.handle))
end
function properties.T(self) return ops.numpy_T(self) end

-- ---- from Lua and back ----------------------------------------------------------------------------------

local ELEMENTS = {
  float32 = "float", float64 = "double", int8 = "int8_t", int16 = "int16_t", int32 = "int32_t",
  int64 = "int64_t", uint8 = "uint8_t", uint16 = "uint16_t", uint32 = "uint32_t", uint64 = "uint64_t",
  bool = "bool",
}

local MOST_DIMENSIONS = 64  -- a table that holds itself has no end

-- The sizes of nested tables, refusing what is ragged.
local function sizes_of(values)
  local sizes, level = {}, values
  while type(level) == "table" do
    if #sizes == MOST_DIMENSIONS then core.refuse("tensor: the tables are nested more than %d deep", #sizes) end
    sizes[#sizes + 1] = #level
    level = level[1]
  end
  return sizes
end

local function flatten(values, sizes, depth, flat)
  if depth > #sizes then
    if type(values) ~= "number" and type(values) ~= "boolean" and not is.int(values) then
      core.refuse("tensor: an element is a %s, and none of these: number, boolean", type(values))
    end
    flat[#flat + 1] = values
    return
  end
  if type(values) ~= "table" or #values ~= sizes[depth] then
    core.refuse("tensor: the tables are ragged: at depth %d one has %s entries, the first %d",
      depth, type(values) == "table" and #values or "no", sizes[depth])
  end
  local keys = 0
  for _ in pairs(values) do keys = keys + 1 end
  if keys ~= #values then core.refuse("tensor: a table at depth %d has a hole, or a key that is no position", depth) end
  for i = 1, #values do flatten(values[i], sizes, depth + 1, flat) end
end

-- The dtype of elements that comes of the first of them.
local function dtype_of(first)
  if type(first) == "boolean" then return "bool" end
  return ffi.istype("int64_t", first) and "int64" or ffi.istype("uint64_t", first) and "uint64" or "float32"
end

-- A tensor of nested tables, a number or a boolean. Options: dtype (float32; bool for booleans, int64 for 1LL),
-- requires_grad.
function tensor.tensor(values, options)
  options = options or {}
  if type(options) ~= "table" then core.refuse("tensor: options are a table such as { dtype = \"int64\" }") end
  local sizes, flat = sizes_of(values), {}
  flatten(values, sizes, 1, flat)
  local dtype = options.dtype or dtype_of(flat[1])
  local element = ELEMENTS[dtype]
  if not is.dtype(dtype) then core.refuse("tensor: there is no dtype %s", tostring(dtype)) end
  local through = element and dtype or (string.match(dtype, "^complex") and "float64" or "float32")
  local data = ffi.new(ELEMENTS[through] .. "[?]", #flat + 1)
  for i = 1, #flat do
    local value = flat[i]
    if type(value) == "boolean" and through ~= "bool" then value = value and 1 or 0 end
    if type(value) == "number" and through == "bool" then value = value ~= 0 end
    local whole = through:match("u?int")
    if whole and (not is.int(value) or (value < 0 and whole == "uint")) then
      core.refuse("tensor: %s is no %s", tostring(value), through)
    end
    data[i - 1] = value
    if whole and data[i - 1] ~= value then core.refuse("tensor: %s is no %s", tostring(value), through) end
  end
  local shape, rank = convert.ints(sizes, 0)
  local made = own(core.made(C.tn_tensor_from_data, data, core.DTYPES[through], shape, rank, nil, 0))
  if through ~= dtype then made = made:to(dtype) end
  if options.requires_grad then made:requires_grad_() end
  return made
end

local function nest(data, sizes, depth, offset, step)
  if depth > #sizes then
    local value = data[offset]
    return type(value) == "cdata" and core.exactly(value) or value
  end
  local made, inner = {}, step / math.max(sizes[depth], 1)
  for i = 1, sizes[depth] do made[i] = nest(data, sizes, depth + 1, offset + (i - 1) * inner, inner) end
  return made
end

-- The elements as nested tables; a number, or a boolean, of a tensor without dimensions. Integers that a number does
-- not hold exactly are cdata, as 1LL is.
function methods.tolist(self)
  local dtype = self.dtype
  if ELEMENTS[dtype] == nil then
    if string.match(dtype, "^complex") then core.refuse("tolist: of complex numbers, take view_as_real() first") end
    return self:to("float32"):tolist()
  end
  local n, sizes = self:numel(), self.shape
  local data = ffi.new(ELEMENTS[dtype] .. "[?]", n + 1)
  if C.tn_tensor_to_data(self.handle, data, C.tn_tensor_bytes(self.handle)) ~= 0 then fail() end
  return nest(data, sizes, 1, 0, n)
end

-- The only element.
function methods.item(self)
  local value = ffi.new("tn_scalar[1]")
  if C.tn_tensor_item(self.handle, value) ~= 0 then fail() end
  return core.from_scalar(value[0])
end

function methods.numel(self)
  local n = tonumber(C.tn_tensor_numel(self.handle))
  if n < 0 then fail() end
  return n
end

function methods.dim(self)
  local rank = tonumber(C.tn_tensor_dim(self.handle))
  if rank < 0 then fail() end
  return rank
end

-- The size of a dimension, or all of them.
function methods.size(self, dim)
  if dim == nil then return self.shape end
  if not is.int(dim) then core.refuse("size: a dimension is a whole number") end
  local size = tonumber(C.tn_tensor_size(self.handle, dim))
  if size < 0 then fail() end
  return size
end

-- Of another dtype, or on another device.
function methods.to(self, where)
  if is.dtype(where) then return ops._to_copy(self, { dtype = where }) end
  if not is.device(where) then core.refuse("to: %s is neither a dtype nor a device", tostring(where)) end
  return own(core.made(C.tn_to_device, self.handle, convert.device(where), false))
end
for _, dtype in ipairs({ "float", "double", "long", "int", "bool", "half", "bfloat16" }) do
  local names = { float = "float32", double = "float64", long = "int64", int = "int32", half = "float16" }
  methods[dtype] = function(self) return self:to(names[dtype] or dtype) end
end

function methods.is_same(self, other)
  if not is.tensor(other) then core.refuse("is_same: the other is no tensor") end
  return truth(C.tn_tensor_is_same(self.handle, other.handle))
end

function methods.is_contiguous(self) return truth(C.tn_tensor_is_contiguous(self.handle)) end

-- ---- elements -------------------------------------------------------------------------------------------

-- x[i] is a part along the first dimension, counted from 0 as libtorch does; x[mask], x[indices] pick elements.
function operators.get(self, key)
  if is.int(key) then return ops.select(self, 0, key) end
  if is.tensor(key) then return ops.index(self, { key }) end
  if type(key) == "string" then core.raise("not_found", string.format("a tensor has no method or property %q", key)) end
  core.refuse("a tensor cannot be indexed with a %s", type(key))
end

function operators.set(self, key, value)
  if key == "grad" then
    if C.tn_set_grad(self.handle, convert.maybe_tensor(value)) ~= 0 then fail() end
  elseif key == "requires_grad" then
    methods.requires_grad_(self, value)
  elseif is.int(key) then
    local part = ops.select(self, 0, key)
    if is.tensor(value) then part:copy_(value) else part:fill_(value) end
  elseif is.tensor(key) then
    local values = is.tensor(value) and value or tensor.tensor(value):to(self.dtype)
    self:index_put_({ key }, values)
  else
    core.refuse("a tensor has no %s to set", tostring(key))
  end
end

-- ---- operators ------------------------------------------------------------------------------------------

operators.neg = ops.neg

function operators.add(x, y)
  if is.tensor(x) then return ops.add(x, y) end
  return ops.add(y, x)
end
function operators.mul(x, y)
  if is.tensor(x) then return ops.mul(x, y) end
  return ops.mul(y, x)
end
function operators.sub(x, y)
  if is.tensor(x) then return ops.sub(x, y) end
  return ops.rsub(y, x)
end
function operators.div(x, y)
  if is.tensor(x) then return ops.div(x, y) end
  return ops.mul(ops.reciprocal(y), x)
end
operators.mod, operators.pow = ops.remainder, ops.pow

function operators.len(self) return self:size(0) end
function operators.text(self)
  if self.handle == nil then return "a freed tensor" end
  return core.text(C.tn_tensor_print, self.handle)
end

return tensor

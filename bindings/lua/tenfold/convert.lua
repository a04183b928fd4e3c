-- What may be given for each type of an argument, and what C takes for it: added to core as `is` and `convert`.

local ffi = require("ffi")
local core = require("tenfold.core")

local Tensor = core.Tensor
local enums, bool_t = require("tenfold.enums"), ffi.typeof("bool[1]")

-- ---- what is given --------------------------------------------------------------------------------------

local is, convert = {}, {}
core.is, core.convert = is, convert

local int64_t, uint64_t, scalar_t = ffi.typeof("int64_t"), ffi.typeof("uint64_t"), ffi.typeof("tn_scalar")
local floor, type, istype = math.floor, type, ffi.istype
local DTYPES, LAYOUTS, FORMATS, DEVICES = enums.dtype, enums.layout, enums.memory_format, enums.device
local INT, DOUBLE, COMPLEX, BOOL = enums.scalar.int, enums.scalar.double, enums.scalar.complex, enums.scalar.bool
core.DTYPES, core.DEVICE_NAMES = DTYPES, {}
for name, number in pairs(DEVICES) do core.DEVICE_NAMES[number] = name end

function is.tensor(x) return istype(Tensor, x) end
function is.int(x)
  if type(x) == "number" then return x == floor(x) and x >= -2 ^ 63 and x < 2 ^ 63 end
  return istype(int64_t, x) or istype(uint64_t, x)
end
function is.number(x) return type(x) == "number" or istype(int64_t, x) end
function is.bool(x) return type(x) == "boolean" end

-- Numbers by kind, and the check of an argument: any kind that stands for it.
local numbers = {
  bool = is.bool, float = is.number,
  int = function(x) return is.int(x) and not istype(uint64_t, x) end,
  complex = function(x) return istype(scalar_t, x) end,
}
local function none() return false end
local function number_for(kind)
  local checks = {}
  for i, name in ipairs(require("tenfold.fitting")[kind]) do checks[i] = numbers[name] end
  local first, second, third, fourth = checks[1], checks[2] or none, checks[3] or none, checks[4] or none
  return function(x) return first(x) or second(x) or third(x) or fourth(x) end
end
is.float, is.scalar = number_for("float"), number_for("Scalar")
function is.string(x) return type(x) == "string" and not x:find("\0", 1, true) end  -- which C would take for its end
function is.dtype(x) return DTYPES[x] ~= nil end
function is.layout(x) return LAYOUTS[x] ~= nil end
function is.memory_format(x) return FORMATS[x] ~= nil end
function is.device(x) return type(x) == "string" and DEVICES[string.match(x, "^%a+")] ~= nil end
function is.generator(x) return type(x) == "table" and istype("tn_generator *", x.handle) end

-- A table that is an array of what `check` accepts, and nothing else.
local function array_of(check)
  return function(x)
    if type(x) ~= "table" then return false end
    for i = 1, #x do
      if not check(x[i]) then return false end
    end
    return #x > 0 or next(x) == nil
  end
end
is.ints, is.floats, is.bools = array_of(is.int), array_of(is.float), array_of(is.bool)
is.scalars, is.tensors = array_of(is.scalar), array_of(is.tensor)
is.maybe_tensors = array_of(function(x) return x == false or is.tensor(x) end)

-- ---- what C takes ---------------------------------------------------------------------------------------

local scalar_1, int_1, double_1 = ffi.typeof("tn_scalar[1]"), ffi.typeof("int64_t[1]"), ffi.typeof("double[1]")
local dtype_1, device_1, device_t = ffi.typeof("tn_dtype[1]"), ffi.typeof("tn_device[1]"), ffi.typeof("tn_device")
local ints_t, doubles_t, bools_t = ffi.typeof("int64_t[?]"), ffi.typeof("double[?]"), ffi.typeof("bool[?]")
local scalars_t, tensors_t = ffi.typeof("tn_scalar[?]"), ffi.typeof("const tn_tensor *[?]")

-- A Lua number without a fraction is an int, as it is written; core.double says otherwise.
local function scalar(x)
  if istype(scalar_t, x) then return x end
  local made = scalar_t()
  if type(x) == "boolean" then
    made.tag, made.as.b = BOOL, x
  elseif type(x) ~= "number" or (x == floor(x) and x >= -2 ^ 63 and x < 2 ^ 63) then
    made.tag, made.as.i = INT, x
  else
    made.tag, made.as.d = DOUBLE, x
  end
  return made
end
convert.scalar = scalar

local function double(x)
  if type(x) == "boolean" then return x and 1 or 0 end
  return x
end
convert.double = double

function core.double(x)
  local made = scalar_t()
  made.tag, made.as.d = DOUBLE, x
  return made
end

function core.complex_number(re, im)
  local made = scalar_t()
  made.tag, made.as.c.re, made.as.c.im = COMPLEX, re, im
  return made
end

-- An integer of C's as one of Lua's numbers, or as it is where they do not hold it exactly.
function core.exactly(x)
  local most = 2LL ^ 53LL
  if istype(uint64_t, x) then return x <= 2ULL ^ 53ULL and tonumber(x) or x end
  return (x >= -most and x <= most) and tonumber(x) or x
end

-- A scalar that C gave, as Lua writes it; complex ones stay as they are.
function core.from_scalar(x)
  if x.tag == INT then return core.exactly(x.as.i) end
  if x.tag == DOUBLE then return x.as.d end
  if x.tag == BOOL then return x.as.b end
  return x
end

function convert.dtype(x) return DTYPES[x] end
function convert.memory_format(x) return FORMATS[x] end
function convert.device(x)
  local kind, index = string.match(x, "^(%a+):?(%d*)$")
  if DEVICES[kind] == nil then core.refuse("there is no device %q: cpu, cuda, cuda:0, …", x) end
  return device_t(DEVICES[kind], tonumber(index) or -1)
end

local function freed() core.raise("argument", "a tensor that is given was freed before") end

function convert.maybe_tensor(x)
  if x == nil then return nil end
  if x.handle == nil then freed() end
  return x.handle
end
function convert.maybe_generator(x) return x ~= nil and core.live(x) or nil end
function convert.maybe_scalar(x) return x ~= nil and scalar_1(scalar(x)) or nil end
function convert.maybe_int(x) return x ~= nil and int_1(x) or nil end
function convert.maybe_double(x) return x ~= nil and double_1(double(x)) or nil end
function convert.maybe_bool(x)
  if x == nil then return nil end
  return bool_t(x)
end
function convert.maybe_dtype(x) return x ~= nil and dtype_1(DTYPES[x]) or nil end
function convert.maybe_layout(x) return x ~= nil and dtype_1(LAYOUTS[x]) or nil end
function convert.maybe_memory_format(x) return x ~= nil and dtype_1(FORMATS[x]) or nil end
function convert.maybe_device(x) return x ~= nil and device_1(convert.device(x)) or nil end

-- An array and its count; one entry stands for a fixed number of them.
local function same(x) return x end
local function list(array_t, converted)
  return function(x, size)
    if x == nil then return nil, 0 end
    if type(x) ~= "table" then
      local made = array_t(size)
      for i = 0, size - 1 do made[i] = converted(x) end
      return made, size
    end
    local n = #x
    local made = array_t(n + 1)  -- never NULL: that would be None
    for i = 1, n do made[i - 1] = converted(x[i]) end
    return made, n
  end
end
convert.ints, convert.doubles, convert.bools = list(ints_t, same), list(doubles_t, double), list(bools_t, same)

function convert.scalars(x)
  local made = scalars_t(#x + 1)
  for i = 1, #x do made[i - 1] = scalar(x[i]) end
  return made, #x
end

function convert.tensors(x)
  if x == nil then return nil, 0 end
  local made = tensors_t(#x + 1)
  for i = 1, #x do
    if x[i].handle == nil then freed() end
    made[i - 1] = x[i].handle
  end
  return made, #x
end

-- Here `false` is None, for nil ends a Lua array.
function convert.maybe_tensors(x)
  local made = tensors_t(#x + 1)
  for i = 1, #x do made[i - 1] = x[i] and convert.maybe_tensor(x[i]) or nil end
  return made, #x
end

return core

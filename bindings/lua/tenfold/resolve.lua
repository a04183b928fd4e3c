-- Which overload of an operator is meant, where arguments are given by name, spread out, or wrong.

local core = require("tenfold.convert")
local is = core.is

-- By operator: a list of { function, schema, number of positional arguments, names, types, which are needed }.
local resolve = { signatures = {} }

local function either(one, many) return function(x) return one(x) or many(x) end end

local checks = {
  Tensor = is.tensor, Scalar = is.scalar, int = is.int, float = is.float, bool = is.bool, str = is.string,
  ScalarType = is.dtype, Layout = is.layout, Device = is.device, MemoryFormat = is.memory_format,
  Generator = is.generator, ["int[]"] = is.ints, ["float[]"] = is.floats, ["Scalar[]"] = is.scalars,
  ["Tensor[]"] = is.tensors, ["Tensor?[]"] = is.maybe_tensors, ["int[n]"] = either(is.int, is.ints),
  ["bool[n]"] = either(is.bool, is.bools),
}

local function is_named(x) return type(x) == "table" and type(next(x)) == "string" and x.handle == nil end

-- The arguments in an overload's order, or nil and why they do not fit.
local function bind(signature, given, n, named)
  local _, _, positional, names, types, needed = unpack(signature)
  if n > positional then return nil, "takes fewer arguments in order" end
  local bound, used = {}, 0
  for i = 1, #names do
    local value = given[i]
    if i > n then value = nil end
    local by_name = named and named[names[i]]
    if by_name ~= nil then
      if value ~= nil then return nil, names[i] .. " is given twice" end
      value, used = by_name, used + 1
    end
    if value == nil then
      if needed[i] then return nil, names[i] .. " is missing" end
    elseif not checks[types[i]](value) then
      return nil, string.format("%s is a %s", names[i], types[i])
    end
    bound[i] = value
  end
  for name in pairs(named or {}) do
    local known = false
    for i = 1, #names do known = known or names[i] == name end
    if not known then return nil, "has no argument " .. tostring(name) end
  end
  return bound
end

local function kind_of(x)
  if is.tensor(x) then return "tensor" end
  if type(x) == "table" and is_named(x) then
    local names = {}
    for name, value in pairs(x) do names[#names + 1] = tostring(name) .. " = " .. kind_of(value) end
    table.sort(names)
    return "{" .. table.concat(names, ", ") .. "}"
  end
  if type(x) == "table" and #x > 0 then return "{" .. kind_of(x[1]) .. ", …}" end
  if type(x) == "number" and x ~= math.floor(x) then return "number with a fraction" end
  return type(x)
end

local function refuse(name, given, n, named, reasons)
  local kinds = {}
  for i = 1, n do kinds[i] = kind_of(given[i]) end
  if named then kinds[#kinds + 1] = kind_of(named) end
  core.refuse("%s: cannot be called with (%s)\n%s", name, table.concat(kinds, ", "), table.concat(reasons, "\n"))
end

-- Call the overload of an operator that takes these arguments.
function resolve.call(name, ...)
  local signatures = resolve.signatures[name]
  local given, n, named = { ... }, select("#", ...), nil
  while n > 0 and given[n] == nil do n = n - 1 end
  if n > 0 and is_named(given[n]) then
    named, given[n], n = given[n], nil, n - 1
  end
  local reasons = {}
  local function attempt()
    for _, signature in ipairs(signatures) do
      local bound, reason = bind(signature, given, n, named)
      if bound ~= nil then return signature, bound end
      reasons[#reasons + 1] = string.format("  %s: %s", signature[2], reason)
    end
  end
  local signature, bound = attempt()
  local first = signatures.spread
  if signature == nil and first ~= nil and n >= first then
    local sizes = {}
    for i = first, n do sizes[#sizes + 1] = is.int(given[i]) and given[i] or nil end
    if #sizes == n - first + 1 then
      given[first], n = sizes, first
      signature, bound = attempt()
    end
  end
  if signature ~= nil then return signature[1](unpack(bound, 1, #signature[4])) end
  refuse(name, given, n, named, reasons)
end

return resolve

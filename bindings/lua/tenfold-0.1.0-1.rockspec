-- Made installable by `make lua`, which adds the generated modules: then `luarocks make` in build/lua.
rockspec_format = "3.0"
package = "tenfold"
version = "0.1.0-1"
source = { url = "file://." }  -- the folder that it lies in
description = {
  summary = "libtorch's tensors, gradients and script modules for LuaJIT",
  license = "Apache-2.0",
}
dependencies = { "lua == 5.1" }
build = {
  type = "builtin",
  modules = {
    ["tenfold"] = "tenfold/init.lua",
    ["tenfold.convert"] = "tenfold/convert.lua",
    ["tenfold.core"] = "tenfold/core.lua",
    ["tenfold.functions"] = "tenfold/functions.lua",
    ["tenfold.declarations"] = "tenfold/declarations.lua",
    ["tenfold.enums"] = "tenfold/enums.lua",
    ["tenfold.fitting"] = "tenfold/fitting.lua",
    ["tenfold.layers"] = "tenfold/layers.lua",
    ["tenfold.learning"] = "tenfold/learning.lua",
    ["tenfold.location"] = "tenfold/location.lua",
    ["tenfold.nn"] = "tenfold/nn.lua",
    ["tenfold.operators"] = "tenfold/operators.lua",
    ["tenfold.resolve"] = "tenfold/resolve.lua",
    ["tenfold.script"] = "tenfold/script.lua",
    ["tenfold.tensor"] = "tenfold/tensor.lua",
    ["tenfold.values"] = "tenfold/values.lua",
  },
}

# Files that Python's torch.save wrote: a zip archive with a pickle that says what there is, and the bytes of tensors. Only
# what holds tensors and plain values is made of it; whatever else a pickle names is refused, and nothing of it is run.

is_zip <- function(path) identical(readBin(path, "raw", 4), as.raw(c(0x50, 0x4b, 0x03, 0x04)))

load_pickle <- function(path) {
  entries <- tryCatch(utils::unzip(path, list = TRUE), error = function(e) refuse(conditionMessage(e), kind = "TORCH"))
  pickle <- grep("(^|/)data[.]pkl$", entries$Name, value = TRUE)
  if (length(pickle) != 1) refuse(path, " holds no data.pkl: it was not written by torch.save")
  folder <- sub("data[.]pkl$", "", pickle)
  if (paste0(folder, "constants.pkl") %in% entries$Name) refuse(path, " is TorchScript: jit_load loads it")
  read <- function(name) {
    name <- paste0(folder, name)
    size <- entries$Length[match(name, entries$Name)]
    if (is.na(size)) refuse(path, " lacks ", name)
    source <- unz(path, name, "rb")
    on.exit(base::close(source))
    readBin(source, "raw", size)
  }
  if (paste0(folder, "byteorder") %in% entries$Name && rawToChar(read("byteorder")) != "little") {
    refuse(path, " was written by a big-endian machine")
  }
  storages <- new.env(parent = emptyenv())
  storage <- function(kind, key) {
    if (is.null(storages[[key]])) {
      dtype <- storage_types[[sub("Storage$", "", kind)]]
      if (is.null(dtype)) refuse("elements of a torch.", kind, " cannot be read")
      assign(key, torch_tensor_from_buffer(read(paste0("data/", key)), -1, dtype), storages)
    }
    storages[[key]]
  }
  as_r(run_pickle(read("data.pkl"), storage))
}

storage_types <- list(
  Float = "float32", Double = "float64", Half = "float16", BFloat16 = "bfloat16", Long = "int64", Int = "int32",
  Short = "int16", Char = "int8", Byte = "uint8", Bool = "bool", ComplexFloat = "complex64",
  ComplexDouble = "complex128", Untyped = "uint8"
)

# ---- the pickle's own machine ----

# Lists, tuples and dicts are filled after they were put aside: so each is an environment until all is read.
new_pile <- function(kind, values = list(), keys = list()) {
  pile <- new.env(parent = emptyenv())
  pile$kind <- kind
  pile$values <- values
  pile$keys <- keys
  pile
}

as_r <- function(x) {
  if (!is.environment(x)) return(x)
  if (x$kind == "global") return(x$name)
  values <- lapply(x$values, as_r)
  if (x$kind == "dict") names(values) <- vapply(x$keys, function(key) as.character(as_r(key)), "")
  values
}

run_pickle <- function(bytes, storage) {
  at <- 0
  stack <- list()
  marks <- list()
  memo <- new.env(parent = emptyenv())
  take <- function(count) {
    if (at + count > length(bytes)) refuse("the pickle ends too early")
    at <<- at + count
    bytes[at - count + seq_len(count)]
  }
  whole <- function(count) sum(as.numeric(take(count)) * 256^(seq_len(count) - 1))
  signed <- function(count) {
    if (count == 0) return(0L)
    found <- whole(count)
    if (found >= 2^(8 * count - 1)) found <- found - 2^(8 * count)
    if (abs(found) <= .Machine$integer.max) as.integer(found) else found
  }
  text <- function(count) {
    found <- rawToChar(take(count))
    Encoding(found) <- "UTF-8"
    found
  }
  line <- function() {
    end <- match(as.raw(10), bytes[-seq_len(at)])
    if (is.na(end)) refuse("the pickle ends too early")
    sub("\n$", "", text(end))
  }
  push <- function(x) stack[length(stack) + 1] <<- list(x)
  pop <- function() {
    if (length(stack) == 0) refuse("the pickle takes from an empty stack")
    found <- stack[[length(stack)]]
    stack[length(stack)] <<- NULL
    found
  }
  popped <- function(count) rev(lapply(seq_len(count), function(i) pop()))
  since_mark <- function() {
    if (length(marks) == 0) refuse("the pickle lacks a mark")
    found <- stack
    stack <<- marks[[length(marks)]]
    marks[length(marks)] <<- NULL
    found
  }
  put <- function(key) assign(as.character(key), stack[length(stack)], memo)
  get_back <- function(key) {
    held <- memo[[as.character(key)]]
    if (is.null(held)) refuse("the pickle asks for what it never put aside")
    stack <<- c(stack, held)
  }
  add_items <- function(pile, entries) {
    odd <- seq_along(entries) %% 2 == 1
    pile$keys <- c(pile$keys, entries[odd])
    pile$values <- c(pile$values, entries[!odd])
  }
  top <- function() stack[[length(stack)]]
  tuple <- function(values) push(new_pile("list", values))
  steps <- list(
    `80` = function() take(1), `95` = function() take(8),                     # PROTO, FRAME
    `28` = function() {                                                       # MARK
      marks[[length(marks) + 1]] <<- stack
      stack <<- list()
    },
    `4e` = function() push(NULL), `88` = function() push(TRUE), `89` = function() push(FALSE),
    `4a` = function() push(signed(4)), `4b` = function() push(as.integer(whole(1))),
    `4d` = function() push(as.integer(whole(2))), `8a` = function() push(signed(whole(1))),
    `47` = function() push(readBin(take(8), "double", endian = "big")),
    `58` = function() push(text(whole(4))), `8c` = function() push(text(whole(1))),
    `54` = function() push(text(whole(4))), `55` = function() push(text(whole(1))),
    `7d` = function() push(new_pile("dict")), `5d` = function() tuple(list()), `29` = function() tuple(list()),
    `74` = function() {                                                       # TUPLE
      found <- since_mark()
      tuple(found)
    },
    `85` = function() tuple(popped(1)), `86` = function() tuple(popped(2)), `87` = function() tuple(popped(3)),
    `61` = function() {                                                       # APPEND
      each <- list(pop())
      pile <- top()
      pile$values <- c(pile$values, each)
    },
    `65` = function() {                                                       # APPENDS
      found <- since_mark()
      pile <- top()
      pile$values <- c(pile$values, found)
    },
    `73` = function() {                                                       # SETITEM
      found <- popped(2)
      add_items(top(), found)
    },
    `75` = function() {                                                       # SETITEMS
      found <- since_mark()
      add_items(top(), found)
    },
    `71` = function() put(whole(1)), `72` = function() put(whole(4)), `94` = function() put(length(memo)),
    `68` = function() get_back(whole(1)), `6a` = function() get_back(whole(4)),
    `63` = function() {                                                       # GLOBAL
      module <- line()
      push(named_global(module, line()))
    },
    `93` = function() {                                                       # STACK_GLOBAL
      found <- popped(2)
      push(named_global(found[[1]], found[[2]]))
    },
    `51` = function() {                                                       # BINPERSID: of a storage
      id <- pop()$values
      push(storage(sub("^.*[.]", "", as_r(id[[2]])), id[[3]]))
    },
    `52` = function() {                                                       # REDUCE
      found <- popped(2)
      push(made_by(as_r(found[[1]]), found[[2]]$values))
    },
    `81` = function() {                                                       # NEWOBJ
      found <- popped(2)
      push(made_by(as_r(found[[1]]), found[[2]]$values))
    },
    `62` = function() pop()                                                   # BUILD: what a dict notes about itself
  )
  repeat {
    code <- as.character(take(1))
    if (code == "2e") return(pop())
    step <- steps[[code]]
    if (is.null(step)) refuse("the pickle has an instruction, 0x", code, ", that is not known here")
    step()
  }
}

named_global <- function(module, name) {
  global <- new_pile("global")
  global$name <- paste0(module, ".", name)
  global
}

# What a Python function that a pickle names gives for its arguments.
made_by <- function(name, given) {
  strided <- function(storage) {
    numbers <- function(pile) as.numeric(unlist(as_r(pile)))
    found <- torch_as_strided(storage, numbers(given[[3]]), numbers(given[[4]]), given[[2]])
    if (given[[5]]) .Call(C_tf_set_requires_grad, found, TRUE) else found
  }
  switch(name,
    torch._utils._rebuild_tensor_v2 = strided(given[[1]]),
    torch._utils._rebuild_tensor_v3 = strided(torch_view(given[[1]], dtype = sub("^torch[.]", "", as_r(given[[7]])))),
    torch._utils._rebuild_parameter = nn_parameter(given[[1]], given[[2]]),
    collections.OrderedDict = new_pile("dict"),
    torch.Size = given[[1]],
    torch.device = paste(unlist(as_r(given)), collapse = ":"),
    refuse("the file names ", name, ", which is more than tensors and plain values: in Python, save its state_dict()")
  )
}

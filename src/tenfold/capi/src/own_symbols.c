/* Libtorch keeps its own functions. It exports C functions that hosts have too: a BLAS (R's), libuv (Node's).
 * By the rules of ELF the host's would stand before them, also for libtorch's own calls: another speed,
 * another version, another calling convention. RTLD_DEEPBIND would turn that order round for every name, the
 * host's standard streams and malloc included, and so crash hosts in C++. Here, where a host has a function
 * of the same plain C name, each library of libtorch is bound to the C functions it defines itself: as if it
 * were linked with -Bsymbolic-functions. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader.h"

#if defined(__x86_64__)
#define IS_CALL(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#define IS_POINTER(type) ((type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_CALL(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#define IS_POINTER(type) ((type) == R_AARCH64_ABS64)
#else
#error "the relocations of this machine are not known here"
#endif

typedef struct {
    uintptr_t base;
    const char *file;
    const Elf64_Dyn *dynamic;
    const Elf64_Sym *symbols;
    const char *names;
    const uint32_t *hash;
    const Elf64_Rela *data, *calls;
    size_t data_size, calls_size;
    uintptr_t sealed_from, sealed_to; /* what the linker made read-only once it was relocated */
    bool unsealed, read_only;         /* read_only: nothing but data is relocated */
} library;

static library library_of(const struct dl_phdr_info *info) {
    const char *slash = strrchr(info->dlpi_name, '/');
    library of = {.base = info->dlpi_addr, .file = slash ? slash + 1 : info->dlpi_name, .read_only = true};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_DYNAMIC) of.dynamic = (const Elf64_Dyn *)(of.base + part->p_vaddr);
        if (part->p_type == PT_GNU_RELRO) {
            of.sealed_from = of.base + part->p_vaddr;
            of.sealed_to = of.sealed_from + part->p_memsz;
        }
    }
    for (const Elf64_Dyn *entry = of.dynamic; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *pointer = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB: of.symbols = pointer; break;
            case DT_STRTAB: of.names = pointer; break;
            case DT_GNU_HASH: of.hash = pointer; break;
            case DT_RELA: of.data = pointer; break;
            case DT_RELASZ: of.data_size = entry->d_un.d_val; break;
            case DT_JMPREL: of.calls = pointer; break;
            case DT_PLTRELSZ: of.calls_size = entry->d_un.d_val; break;
            case DT_TEXTREL: of.read_only = false; break;
            default: break;
        }
    }
    return of;
}

/* A function that the library defines, with a name as C gives it: C++ counts on one definition
 * for a whole program. */
static const char *plain_function(const library *of, const Elf64_Sym *symbol) {
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return NULL;
    const char *name = of->names + symbol->st_name;
    return name[0] == '_' && name[1] == 'Z' ? NULL : name;
}

/* The table of exported symbols, as linkers write it for DT_GNU_HASH. */
static const uint32_t *buckets_of(const uint32_t *hash) { return hash + 4 + 2 * (size_t)hash[2]; }

static bool defines(const library *of, const char *name) {
    uint32_t wanted = 5381, count = of->hash[0], offset = of->hash[1];
    for (const char *c = name; *c; c++) wanted = wanted * 33 + (unsigned char)*c;
    const uint64_t *filter = (const uint64_t *)(of->hash + 4);
    uint64_t word = filter[(wanted / 64) % of->hash[2]];
    if (!(word >> (wanted % 64) & word >> ((wanted >> of->hash[3]) % 64) & 1)) return false;
    const uint32_t *chains = buckets_of(of->hash) + count;
    uint32_t index = buckets_of(of->hash)[wanted % count];
    if (index < offset) return false;
    for (;; index++) {
        uint32_t found = chains[index - offset];
        if ((found | 1) == (wanted | 1)) {
            const char *plain = plain_function(of, of->symbols + index);
            if (plain != NULL && strcmp(plain, name) == 0) return true;
        }
        if (found & 1) return false;
    }
}

static bool share_a_name(const library *stranger, const library *own) {
    uint32_t count = stranger->hash[0], offset = stranger->hash[1];
    const uint32_t *buckets = buckets_of(stranger->hash), *chains = buckets + count;
    for (uint32_t i = 0; i < count; i++) {
        if (buckets[i] < offset) continue;
        for (uint32_t index = buckets[i];; index++) {
            const char *name = plain_function(stranger, stranger->symbols + index);
            if (name != NULL && defines(own, name)) return true;
            if (chains[index - offset] & 1) break;
        }
    }
    return false;
}

static bool protect(const library *of, int how) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = of->sealed_from & ~(page - 1), to = of->sealed_to & ~(page - 1);
    return to <= from || mprotect((void *)from, to - from, how) == 0;
}

static bool bind_each(library *own, const Elf64_Rela *relocations, size_t size) {
    for (const Elf64_Rela *each = relocations; (const char *)each < (const char *)relocations + size;
         each++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(each->r_info);
        if (!IS_CALL(type) && !IS_POINTER(type)) continue;
        const Elf64_Sym *symbol = own->symbols + ELF64_R_SYM(each->r_info);
        if (plain_function(own, symbol) == NULL) continue;
        uintptr_t *place = (uintptr_t *)(own->base + each->r_offset);
        uintptr_t target = own->base + symbol->st_value + (IS_POINTER(type) ? (uintptr_t)each->r_addend : 0);
        if (*place == target) continue;
        if ((uintptr_t)place >= own->sealed_from && (uintptr_t)place < own->sealed_to && !own->unsealed) {
            if (!protect(own, PROT_READ | PROT_WRITE)) return false;
            own->unsealed = true;
        }
        *place = target;
    }
    return true;
}

/* Relocations are read once: megabytes that the process would otherwise go on holding. */
static void let_go(const library *of) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)of->data + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)of->data + of->data_size) & ~(page - 1);
    if (of->read_only && from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

/* ---- the libraries of this process ---- */

typedef struct {
    library own[16]; /* libtorch's */
    int count;
    bool shadowed;
} process;

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_torch(const char *file) {
    return starts_with(file, "libtorch") || starts_with(file, "libc10");
}

static bool asks_for(const library *own, const char *file) {
    for (const Elf64_Dyn *entry = own->dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED && strcmp(own->names + entry->d_un.d_val, file) == 0) return true;
    }
    return false;
}

static int collect(struct dl_phdr_info *info, size_t size, void *found) {
    process *all = found;
    library of = library_of(info);
    (void)size;
    if (is_torch(of.file) && of.symbols && of.names && of.hash && all->count < 16)
        all->own[all->count++] = of;
    return 0;
}

static int compare(struct dl_phdr_info *info, size_t size, void *found) {
    process *all = found;
    library of = library_of(info);
    (void)size;
    if (of.symbols == NULL || of.names == NULL || of.hash == NULL || is_torch(of.file)) return 0;
    if (starts_with(of.file, "libtenfold") || starts_with(of.file, "linux-vdso")) return 0;
    for (int i = 0; i < all->count && !all->shadowed; i++) {
        if (asks_for(&all->own[i], of.file)) return 0; /* what libtorch wants to find is no stranger */
    }
    for (int i = 0; i < all->count && !all->shadowed; i++) all->shadowed = share_a_name(&of, &all->own[i]);
    return all->shadowed;
}

bool tn_bind_own_symbols(void) {
    process all = {.count = 0};
    bool bound = true;
    dl_iterate_phdr(collect, &all);
    dl_iterate_phdr(compare, &all);
    for (int i = 0; i < all.count && bound; i++) {
        library *own = &all.own[i];
        if (all.shadowed)
            bound = bind_each(own, own->data, own->data_size) && bind_each(own, own->calls, own->calls_size);
        if (own->unsealed) protect(own, PROT_READ);
        let_go(own);
    }
    return bound;
}

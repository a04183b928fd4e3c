/* A fence behind every tensor: preloaded, it gives what libtorch's allocator asks for memory that ends where
 * a page begins that nobody may touch, so that a read or a write behind it stops the program at that call; or
 * memory that begins where such a page ends, if FENCE_BEFORE is in the environment. Freed memory may not be
 * touched either. Blocks that are large, or more than there are places for, come from the C library. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void __libc_free(void *block);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_realloc(void *block, size_t size);

#define PAGE ((size_t)4096)
#define LARGEST ((size_t)1 << 20)
#define PLACE (LARGEST + 2 * PAGE) /* the first page and the last are fences */
#define PLACES ((size_t)15000) /* each takes two of the 65,530 mappings that a process may have */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *start; /* of all places */
static int before;  /* the fence that blocks lie at */
static uint32_t waiting[PLACES];   /* those that are free, longest first: a ring */
static size_t sizes[PLACES];
static size_t first, count;

__attribute__((constructor)) static void reserve(void) {
    void *found = mmap(NULL, PLACE * PLACES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return;
    for (size_t i = 0; i < PLACES; i++) waiting[i] = (uint32_t)i;
    count = PLACES;
    before = getenv("FENCE_BEFORE") != NULL;
    start = found;
}

/* Whether there are places: the fuzzer asks, since a library that cannot be preloaded is left
 * out in silence. */
int fence_is_up(void) { return start != NULL; }

static int is_fenced(const void *block) {
    return start != NULL && (const char *)block >= start && (const char *)block < start + PLACE * PLACES;
}

/* The pages of a block, beside one of its place's fences. */
struct pages {
    char *start;
    size_t size;
};

static struct pages pages_of(size_t place, size_t size) {
    char *first_page = start + place * PLACE + PAGE;
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    return (struct pages){before ? first_page : first_page + LARGEST - whole, whole};
}

static void *fenced(size_t size) {
    if (start == NULL || size == 0 || size > LARGEST) return NULL;
    pthread_mutex_lock(&mutex);
    size_t place = count > 0 ? waiting[first] : PLACES;
    if (count > 0) first = (first + 1) % PLACES, count--;
    pthread_mutex_unlock(&mutex);
    if (place == PLACES) return NULL;
    struct pages pages = pages_of(place, size);
    sizes[place] = size;
    if (mprotect(pages.start, pages.size, PROT_READ | PROT_WRITE) == 0)
        return before ? pages.start : pages.start + pages.size - size;
    pthread_mutex_lock(&mutex);
    waiting[(first + count++) % PLACES] = (uint32_t)place;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Elements are aligned as their own size asks for, since a block is a multiple of it; no more than that, or a
 * tensor of one byte would have 63 behind it. */
int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = fenced(size);
    if (*block == NULL) *block = __libc_memalign(alignment, size);
    return *block == NULL ? ENOMEM : 0;
}

void free(void *block) {
    if (!is_fenced(block)) {
        __libc_free(block);
        return;
    }
    size_t place = (size_t)((char *)block - start) / PLACE;
    struct pages pages = pages_of(place, sizes[place]);
    madvise(pages.start, pages.size, MADV_DONTNEED);
    mprotect(pages.start, pages.size, PROT_NONE);
    pthread_mutex_lock(&mutex);
    waiting[(first + count++) % PLACES] = (uint32_t)place;
    pthread_mutex_unlock(&mutex);
}

void *realloc(void *block, size_t size) {
    if (!is_fenced(block)) return __libc_realloc(block, size);
    size_t had = sizes[(size_t)((char *)block - start) / PLACE];
    void *larger = __libc_realloc(NULL, size);
    if (larger == NULL) return NULL;
    memcpy(larger, block, had < size ? had : size);
    free(block);
    return larger;
}

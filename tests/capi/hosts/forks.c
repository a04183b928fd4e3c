/* A host that forks, before libtorch is loaded and after it was used; and whose children end both ways. */
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void use(void) {
    tn_tensor *x = numbers(2, 8), *y = tn_mul(x, x), *sum = tn_sum(y);
    CHECK(number(sum) == 32);
    tn_free(sum);
    tn_free(y);
    tn_free(x);
    FAILS(TN_ERROR_NOT_FOUND, tn_find("aten::none"));
    CHECK(tn_live_tensors() == 0);
}

static void child(bool leave_at_once) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        use();
        if (leave_at_once) _exit(0);
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    child(false);
    use();
    for (int i = 0; i < 4; i++) child(i % 2);
    use();
    return 0;
}

/* Hides the environment, which may contain secrets, from other processes.
 *
 * The kernel shows the block that the process was started with, regardless of
 * setenv. So the variables are copied and the block is overwritten. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "server/config/internal.h"

/* Whether libc, OpenSSL, curl or libuv reads the variable while a server runs.
 */
static bool is_library_variable(const char *entry)
{
    static const char *const names[] = {
        "PATH=",  "HOME=",          "TMPDIR=",       "TZ=",   "LANG=",
        "LC_",    "SSL_CERT_FILE=", "SSL_CERT_DIR=", "UV_",   "MALLOC_",
        "GLIBC_", "OPENSSL_CONF=",  "RES_OPTIONS=",  "ASAN_", "UBSAN_",
        "TSAN_",  "LSAN_"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Never freed, since getenv may be called until the process ends. */
static char **kept;
static char *texts;

void config_hide_env(char **env)
{
    size_t n = 0, n_kept = 0, bytes = 0;

    if (!env || kept)
        return;
    for (; env[n]; n++)
        bytes += strlen(env[n]) + 1;
    kept = FAULT("config.hide_env") ? NULL : calloc(n + 1, sizeof(*kept));
    texts = kept ? malloc(bytes + 1) : NULL;
    if (!texts) {
        free(kept);
        kept = NULL;
        return;
    }
    bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(env[i]) + 1;
        char *to = texts + bytes;

        memcpy(to, env[i], size);
        explicit_bzero(env[i], size);
        env[i] = to;
        bytes += size;
        if (is_library_variable(to))
            kept[n_kept++] = to;
    }
    environ = kept;
}

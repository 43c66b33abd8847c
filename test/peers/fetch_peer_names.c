/* getaddrinfo of this program: the linker prefers it to the C library's, also
 * for libcurl. What no one has described goes on to the C library if it is an
 * address, in whatever form, or a name of this machine; no other is looked up,
 * so that no test needs a network. */
#include "test/peers/fetch_peer.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64 };

struct name {
    const char *text; /* "NAME=" and so on */
    size_t n;         /* of NAME */
    int n_asked;
};

static struct name names[NAMES_MAX];
static int n_names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void names_add(const char *text)
{
    const char *equals = strchr(text, '=');

    if (!equals || n_names == NAMES_MAX)
        abort();
    names[n_names++] = (struct name){text, (size_t)(equals - text), 0};
}

/* What it means this time, up to a slash or the end; NULL: it is not ours. */
static const char *next_answer(const char *name)
{
    const char *at = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_names && !at; i++) {
        struct name *n = &names[i];

        if (strlen(name) != n->n || strncasecmp(n->text, name, n->n) != 0)
            continue;
        at = n->text + n->n + 1;
        for (int skip = n->n_asked++; skip > 0 && strchr(at, '/'); skip--)
            at = strchr(at, '/') + 1;
    }
    pthread_mutex_unlock(&lock);
    return at;
}

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *,
                           struct addrinfo **);

static int ask_system(const char *name, const char *service,
                      const struct addrinfo *hints, struct addrinfo **out)
{
    getaddrinfo_fn *real = (getaddrinfo_fn *)dlsym(RTLD_NEXT, "getaddrinfo");

    return real(name, service, hints, out);
}

/* A list of one and so on, each made by the C library, so that its
 * freeaddrinfo may free it. */
int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    const char *at = name ? next_answer(name) : NULL;
    struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST,
                               .ai_socktype = SOCK_STREAM},
                    **end = out;

    if (!at && name && strcasestr(name, "localhost"))
        return ask_system(name, service, hints, out);
    if (!at)
        return ask_system(name, service, &numeric, out);
    *out = NULL;
    while (*at && *at != '/') {
        char text[64] = "";
        size_t n = strcspn(at, ",/");

        memcpy(text, at, n < sizeof(text) - 1 ? n : sizeof(text) - 1);
        if (ask_system(text, service, &numeric, end) == 0)
            end = &(*end)->ai_next;
        at += n + (at[n] == ',');
    }
    return *out ? 0 : EAI_NONAME;
}

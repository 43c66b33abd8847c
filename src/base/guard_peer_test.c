/* A second opinion on addresses: Python's ipaddress module, queried at run time
 * about the edges of all blocks and many random addresses.
 * test/lib/addresses.py lists where the guard is stricter on purpose. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>

#include "base/guard.h"
#include "test/t.h"

static bool is_public(const char *text)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    const struct guard no_ranges = {0};
    bool is_v6 = strchr(text, ':');

    CHECK(inet_pton(is_v6 ? AF_INET6 : AF_INET, text,
                    is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) == 1);
    return guard_judge(&no_ranges, is_v6 ? (void *)&v6 : (void *)&v4, NULL) ==
           OK;
}

TEST(python_agrees)
{
    unsigned seed = (unsigned)time(NULL), n_public = 0, n_inner = 0;
    char command[512], address[64], verdict[16];
    FILE *in;

    snprintf(command, sizeof(command), "exec '%s' '%s' %u 5000", PYTHON,
             SOURCE_ROOT "/test/lib/addresses.py", seed);
    in = popen(command, "r");
    CHECK(in);
    while (fscanf(in, "%63s %15s", address, verdict) == 2) {
        bool says = strcmp(verdict, "public") == 0;

        if (is_public(address) != says)
            T_FAIL("%s is %s to Python (seed %u)", address, verdict, seed);
        n_public += says;
        n_inner += !says;
    }
    CHECK(pclose(in) == 0);
    CHECK(n_public > 10000 && n_inner > 10000);
}

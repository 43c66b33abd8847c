/* TLS as a client meets it: the handshake, what is said through it, and every
 * way in which it may end. */
#include "test/lib/tls_stage.h"

TEST(a_request_is_answered_through_tls)
{
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    check_tls_alive(&s);
    CHECK(s.n_requests == 1);
    CHECK(net_stats(s.net).tls_handshakes_total == 1);
    CHECK(net_stats(s.net).tls_failed_total == 0);
    CHECK(net_stats(s.net).connections_total == 1);
    tls_stage_fini(&s, &f);
}

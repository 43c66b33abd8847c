/* Requests, replies and streams over real sockets. */
#include "test/lib/net_stage.h"

TEST(a_request_gets_its_reply)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    ask(&s, GET_CLOSE("/hello?a=b"), &h);
    CHECK(strcmp(s.said, "GET /hello?a=b [];") == 0);
    CHECK(strcmp(h.text, "HTTP/1.1 200 OK\r\n"
                         "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                         "Content-Type: text/plain\r\n"
                         "Content-Length: 6\r\n"
                         "Connection: close\r\n"
                         "\r\n/hello") == 0);
    CHECK(net_stats(s.net).connections == 0);
    stage_fini(&s);
}

TEST(a_connection_stays_for_the_next_request)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    for (int i = 1; i <= 5; i++) {
        say(fd, GET("/again"));
        HEAR_UNTIL(&s, fd, &h, count(&h, "/again") == i);
    }
    CHECK(count(&h, "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n") ==
          5);
    CHECK(net_stats(s.net).connections_total == 1);
    CHECK(net_stats(s.net).requests_total == 5);
    close(fd);
    stage_fini(&s);
}

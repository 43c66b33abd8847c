/* Reads over many pages: they do not block lists of others, and end when their
 * client leaves. */
#include "api/api.h"

#include "store/internal.h"
#include "test/lib/server_stage.h"

enum { STUDIES = 4, ROWS = 20 * 1000 };

static char answer[HOUSE_ANSWER_MAX];

static const char *const hello =
    "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}";

/* Like the columns of the table, with their own numbers, and 61 seconds between
 * two rows. */
static void write_columns(struct buf *sql)
{
    for (size_t i = 0; i < N_DECISION_COLUMNS; i++) {
        const char *name = decision_table.columns[i].name;

        if (i == DECISION_SEQ)
            buf_addf(sql, "n.i AS seq");
        else if (i == DECISION_ID)
            buf_addf(sql, ", old.id || n.i AS id");
        else if (i == DECISION_AT_MS)
            buf_addf(sql, ", old.at_ms - (%d - n.i) * 61000 AS at_ms", ROWS);
        else
            buf_addf(sql, ", old.%s", name);
    }
}

/* A server with one decision that appears many times. */
static void open_many(struct house *h)
{
    char path[128];
    struct buf sql;
    sqlite3 *db;

    house_init(h);
    CHECK_INT(house_ask(h, "POST /api/messages", "", hello, answer), 200);
    house_close(h);
    snprintf(path, sizeof(path), "%s/%s", h->folder, DB_NAME);
    buf_init(&sql, 65536);
    buf_addf(&sql,
             "ALTER TABLE decision RENAME TO old; CREATE TABLE decision AS "
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
             "WHERE i < %d) SELECT ",
             ROWS);
    write_columns(&sql);
    buf_addf(&sql, " FROM n, old; CREATE UNIQUE INDEX by_seq ON decision(seq)");
    buf_add_char(&sql, '\0');
    CHECK(!sql.over);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(db_exec(db, sql.p) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    buf_fini(&sql);
    h->has_threads = true; /* page by page, with turns of the loop between */
    house_open(h);
}

static int begin(struct house *h, const char *what)
{
    int fd = house_connect(h);

    house_send(h, fd, what, "", "");
    return fd;
}

/* Turn the loop, without any time passing, until fd has a reply; returns its
 * status. */
static int status_of(struct house *h, int fd)
{
    ssize_t n;

    do {
        loop_turn(&h->loop);
        n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EAGAIN);
    answer[n > 0 ? n : 0] = '\0';
    return n > 12 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static size_t n_studies(const struct house *h)
{
    size_t n = 0;

    for (struct list_node *l = list_first(&h->api.studies); l;
         l = list_next(&h->api.studies, l))
        n++;
    return n;
}

TEST(a_token_has_four_studies_at_a_time_and_its_lists_beside_them)
{
    struct house h;
    int fds[STUDIES + 1], list;

    open_many(&h);
    for (size_t i = 0; i <= STUDIES; i++) {
        fds[i] = begin(&h, "GET /api/analytics/agents?window=52w");
        while (i < STUDIES && n_studies(&h) <= i)
            loop_turn(&h.loop);
    }
    CHECK_INT(status_of(&h, fds[STUDIES]), 503);
    CHECK(strstr(answer, "\"overloaded\"") &&
          strstr(answer, "four analytics queries"));
    for (int i = 0; i < 9; i++) { /* more than the limit */
        list = begin(&h, "GET /api/decisions?limit=1");
        CHECK_INT(status_of(&h, list), 200);
        close(list);
    }
    CHECK_INT(n_studies(&h), STUDIES);
    for (size_t i = 0; i < STUDIES; i++) { /* none is rejected half way */
        CHECK_INT(status_of(&h, fds[i]), 200);
        CHECK(strstr(answer, "\"decisions_read\":20000"));
        close(fds[i]);
    }
    close(fds[STUDIES]);
    loop_turn(&h.loop);
    CHECK_INT(n_studies(&h), 0);
    house_fini(&h);
}

/* A half-closed client cannot be told from one that left, and nothing should be
 * read for that one; so it gets an error. */
TEST(a_read_of_many_pages_ends_with_the_connection_that_asked_for_it)
{
    static const char *const asked[] = {
        "GET /api/analytics/agents?window=52w",
        "GET /api/analytics/thresholds?window=52w",
        "GET /api/decisions?q=nowhere", /* a list of many pages */
    };
    enum { N = sizeof(asked) / sizeof(*asked) };
    struct house h;
    int fds[N];

    open_many(&h);
    for (size_t i = 0; i < N; i++) {
        fds[i] = begin(&h, asked[i]);
        CHECK(shutdown(fds[i], SHUT_WR) == 0);
    }
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(status_of(&h, fds[i]), 400);
        CHECK(strstr(answer, "\"bad_request\"") &&
              strstr(answer, "keep it open"));
        close(fds[i]);
    }
    loop_turn(&h.loop);
    CHECK(!n_studies(&h) && list_is_empty(&h.api.listings));
    house_fini(&h);
}

TEST(who_only_shuts_its_side_gets_what_a_few_pages_answer)
{
    struct house h;
    int fd;

    house_init(&h);
    CHECK_INT(house_ask(&h, "POST /api/messages", "", hello, answer), 200);
    fd = begin(&h, "GET /api/analytics/agents?window=52w");
    CHECK(shutdown(fd, SHUT_WR) == 0);
    CHECK_INT(status_of(&h, fd), 200);
    CHECK(strstr(answer, "\"decisions_read\":1,"));
    close(fd);
    house_fini(&h);
}

/* The position is found by bisection: none is missed at either end. */
TEST(an_until_in_the_past_counts_all_before_it_and_no_other)
{
    static const int rows[] = {1, 2, 250, 251, 252, 10000, 19750, ROWS};
    struct house h;
    int64_t newest_ms;
    const char *at;
    char what[128], wanted[64];
    int fd;

    open_many(&h);
    fd = begin(&h, "GET /api/decisions?limit=1");
    CHECK_INT(status_of(&h, fd), 200);
    close(fd);
    at = strstr(answer, "\"at_ms\":");
    CHECK(at);
    newest_ms = strtoll(at + 8, NULL, 10);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int late = 0; late < 2; late++) {
            int64_t until = newest_ms - (ROWS - rows[i]) * INT64_C(61000);

            snprintf(what, sizeof(what),
                     "GET /api/analytics/agents?since=0&until=%lld",
                     (long long)until + late);
            snprintf(wanted, sizeof(wanted), "\"decisions_read\":%d,",
                     rows[i] - 1 + late);
            fd = begin(&h, what);
            CHECK_INT(status_of(&h, fd), 200);
            close(fd);
            if (!strstr(answer, wanted))
                T_FAIL("%s: no %s", what, wanted);
        }
    house_fini(&h);
}

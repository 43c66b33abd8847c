/* Certificates whose files change while the server runs, with a clock that the
 * test sets. */
#include "server/tls_files.h"
#include "test/lib/tls_stage.h"

struct scene {
    struct stage s;
    struct tls_folder f;
    struct config *config;
    struct tls_files tls_files;
    char log_path[128];
};

static struct config *config_of(const struct tls_folder *f, bool is_on)
{
    static struct config_report report;
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"tls\": {\"listen\": \"%s\", \"certFile\": \"%s\", "
             "\"keyFile\": \"%s\", \"more\": [{\"certFile\": \"%s\", "
             "\"keyFile\": \"%s\"}]}}",
             is_on ? "0.0.0.0:0" : "", f->cert[0], f->key[0], f->cert[1],
             f->key[1]);
    return config_load_text("t", str_of(text), &(struct config_source){0},
                            &report);
}

static void scene_init(struct scene *sc)
{
    struct why why;

    tls_stage_init(&sc->s, &sc->f, test_opts());
    folder_put(&sc->f, 1, &sc->s, (struct cert_wish){.san = "DNS:b.example"});
    snprintf(sc->log_path, sizeof(sc->log_path), "%s/log", sc->f.path);
    close(sc->s.log.fd);
    sc->s.log.fd = open(sc->log_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    sc->config = config_of(&sc->f, true);
    sc->tls_files = (struct tls_files){
        .loop = &sc->s.loop, .log = &sc->s.log, .net = sc->s.net};
    CHECK(sc->config &&
          tls_files_start(&sc->tls_files, sc->config, &why) == OK);
}

static void scene_fini(struct scene *sc)
{
    tls_files_stop(&sc->tls_files);
    config_free(sc->config);
    tls_stage_fini(&sc->s, &sc->f);
}

/* The number of log lines with the event. */
static int said(struct scene *sc, const char *words)
{
    static char text[1 << 20];
    FILE *in = fopen(sc->log_path, "r");
    int n = 0;

    CHECK(in);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    fclose(in);
    for (const char *p = text; (p = strstr(p, words)); p++)
        n++;
    return n;
}

static int64_t days_left(const struct scene *sc)
{
    return (net_stats(sc->s.net).tls_cert_ends_s - sc->s.time.wall_ms / 1000 +
            3600) /
           DAY_S;
}

TEST(a_file_that_changes_is_taken_up_within_ten_seconds)
{
    struct scene sc;

    scene_init(&sc);
    CHECK(days_left(&sc) == 90);
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    later(&sc.s, 9999);
    CHECK(days_left(&sc) == 90);
    later(&sc.s, 1);
    CHECK(days_left(&sc) == 60 && said(&sc, "certificates_renewed") == 1);
    folder_put(&sc.f, 1, &sc.s,
               (struct cert_wish){.san = "DNS:b", .ends_s = 30 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 30 && said(&sc, "certificates_renewed") == 2);
    for (int i = 0; i < 20; i++)
        later(&sc.s, 10000);
    CHECK(said(&sc, "certificates_renewed") == 2);
    scene_fini(&sc);
}

TEST(a_bad_file_is_said_once_and_tried_until_it_is_good)
{
    struct scene sc;

    scene_init(&sc);
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.begins_s = 100});
    for (int i = 0; i < 9; i++)
        later(&sc.s, 10000);
    CHECK(said(&sc, "certificates_not_renewed") == 1);
    CHECK(said(&sc, "is not valid before") == 1);
    CHECK(said(&sc, "certificates_renewed") == 0);
    check_tls_alive(&sc.s);
    later(&sc.s, 10000); /* only the time changed */
    CHECK(said(&sc, "certificates_renewed") == 1);
    CHECK(unlink(sc.f.key[0]) == 0);
    later(&sc.s, 10000);
    later(&sc.s, 10000);
    CHECK(said(&sc, "No such file") == 1);
    check_tls_alive(&sc.s);
    scene_fini(&sc);
}

TEST(an_end_that_comes_near_is_warned_of_every_day)
{
    struct scene sc;

    scene_init(&sc);
    for (int i = 0; i < 76; i++)
        later(&sc.s, 1000LL * DAY_S);
    CHECK(said(&sc, "certificate_ends_soon") == 0);
    for (int i = 0; i < 3; i++)
        later(&sc.s, 1000LL * DAY_S);
    CHECK(said(&sc, "certificate_ends_soon") == 3);
    for (int i = 0; i < 3; i++)
        later(&sc.s, 3600LL * 1000);
    CHECK(said(&sc, "certificate_ends_soon") == 3);
    scene_fini(&sc);
}

TEST(a_configuration_with_a_bad_file_changes_nothing)
{
    char setting[32] = "";
    struct why why = {""};
    struct config *bad;
    struct scene sc;
    int64_t ends_s;

    scene_init(&sc);
    CHECK(tls_files_check(sc.config, sc.s.time.wall_ms, &ends_s, setting,
                          &why) == OK);
    CHECK(ends_s == net_stats(sc.s.net).tls_cert_ends_s && !setting[0]);
    snprintf(sc.f.cert[1], sizeof(sc.f.cert[1]), "/none");
    bad = config_of(&sc.f, true);
    CHECK(tls_files_check(bad, sc.s.time.wall_ms, &ends_s, setting, &why) ==
          ERR_IO);
    CHECK(strcmp(setting, "tls.more[0]") == 0 && strstr(why.text, "/none"));
    CHECK(tls_files_start(&sc.tls_files, bad, &why) == ERR_IO);
    config_free(bad);
    later(&sc.s, 10000); /* checks the earlier ones, and finds them valid */
    CHECK(said(&sc, "not_renewed") == 0);
    check_tls_alive(&sc.s);
    scene_fini(&sc);
}

/* Another part of the reload fails in between. */
TEST(what_was_prepared_and_forgotten_changes_nothing)
{
    struct config *other;
    struct scene sc;
    struct why why;

    scene_init(&sc);
    folder_put(&sc.f, 2, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    memcpy(sc.f.cert[0], sc.f.cert[2], sizeof(sc.f.cert[0]));
    memcpy(sc.f.key[0], sc.f.key[2], sizeof(sc.f.key[0]));
    other = config_of(&sc.f, true);
    CHECK(tls_files_prepare(&sc.tls_files, other, &why) == OK);
    CHECK(days_left(&sc) == 90);
    tls_files_forget(&sc.tls_files);
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 90 && said(&sc, "renewed") == 0);
    CHECK(tls_files_prepare(&sc.tls_files, other, &why) == OK);
    config_free(other); /* the states of the files are kept */
    tls_files_commit(&sc.tls_files);
    CHECK(days_left(&sc) == 60);
    folder_put(&sc.f, 2, &sc.s, (struct cert_wish){.ends_s = 30 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 30 && said(&sc, "certificates_renewed") == 1);
    scene_fini(&sc);
}

TEST(files_in_use_that_became_bad_are_no_reason_to_refuse_the_rest)
{
    struct scene sc;
    struct why why;

    scene_init(&sc);
    CHECK(unlink(sc.f.key[0]) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(tls_files_prepare(&sc.tls_files, sc.config, &why) == OK);
        tls_files_commit(&sc.tls_files);
        CHECK(said(&sc, "certificates_not_renewed") == 1);
        check_tls_alive(&sc.s);
    }
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 60 && said(&sc, "certificates_renewed") == 1);
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 30 * DAY_S});
    CHECK(tls_files_start(&sc.tls_files, sc.config, &why) == OK); /* a reload */
    CHECK(days_left(&sc) == 30 && said(&sc, "certificates_renewed") == 2);
    scene_fini(&sc);
}

TEST(one_that_is_bad_does_not_hold_up_another)
{
    struct scene sc;
    struct why why;

    scene_init(&sc);
    folder_put(&sc.f, 1, &sc.s, (struct cert_wish){.has_other_key = true});
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 60 && said(&sc, "certificates_not_renewed") == 1);
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 30 * DAY_S});
    CHECK(tls_files_start(&sc.tls_files, sc.config, &why) == OK); /* a reload */
    CHECK(days_left(&sc) == 30 && said(&sc, "certificates_renewed") == 0);
    folder_put(&sc.f, 1, &sc.s, (struct cert_wish){.ends_s = 20 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 20 && said(&sc, "certificates_renewed") == 1);
    check_tls_alive(&sc.s);
    scene_fini(&sc);
}

TEST(one_that_has_ended_is_better_than_no_server)
{
    struct cert_wish wish = {.begins_s = -20 * DAY_S, .ends_s = -1};
    struct scene sc;
    struct tls_files tls_files;
    struct stage s;
    struct config *config;
    struct why why;

    scene_init(&sc);
    stage_init(&s, test_opts());
    s.log.fd = sc.s.log.fd;
    folder_put(&sc.f, 0, &s, wish);
    config = config_of(&sc.f, true);
    tls_files =
        (struct tls_files){.loop = &s.loop, .log = &s.log, .net = s.net};
    CHECK(tls_files_start(&tls_files, config, &why) ==
          OK); /* it does not exist yet */
    CHECK(said(&sc, "certificate_not_valid") == 1);
    later(&sc.s, 10000); /* it exists */
    CHECK(said(&sc, "certificates_not_renewed") == 1);
    check_tls_alive(&sc.s);
    tls_files_stop(&tls_files);
    config_free(config);
    stage_fini(&s);
    scene_fini(&sc);
}

TEST(every_step_of_preparing_may_fail)
{
    struct config *other;
    struct scene sc;
    struct why why;
    long nth = 0;
    enum err e;

    scene_init(&sc);
    folder_put(&sc.f, 2, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    memcpy(sc.f.cert[0], sc.f.cert[2], sizeof(sc.f.cert[0]));
    memcpy(sc.f.key[0], sc.f.key[2], sizeof(sc.f.key[0]));
    other = config_of(&sc.f, true);
    do {
        fault_arm(++nth);
        e = tls_files_prepare(&sc.tls_files, other, &why);
        CHECK(fault_fired() || (!e && !sc.tls_files.next_problem.text[0]));
        CHECK(!sc.tls_files.prepared == (e != OK));
        CHECK(sc.tls_files.files.n == 2 && sc.tls_files.next.n == (e ? 0 : 2));
    } while (fault_fired());
    fault_arm(0);
    CHECK(nth > 6);
    check_tls_alive(&sc.s);
    config_free(other);
    scene_fini(&sc);
}

TEST(without_tls_there_is_nothing_to_look_at)
{
    struct net_cert files[TLS_FILES_MAX];
    struct tls_folder f;
    struct config *on, *off;
    struct tls_files tls_files;
    struct stage s;
    struct why why;

    stage_init(&s, test_opts()); /* only a port without TLS */
    folder_init(&f);
    folder_put(&f, 0, &s, (struct cert_wish){.san = NULL});
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    on = config_of(&f, true);
    off = config_of(&f, false);
    CHECK(tls_files_of(off, files) == 0 && tls_files_of(on, files) == 2);
    tls_files =
        (struct tls_files){.loop = &s.loop, .log = &s.log, .net = s.net};
    CHECK(tls_files_start(&tls_files, on, &why) == OK);
    CHECK(timer_is_set(&tls_files.look_again));
    CHECK(tls_files_start(&tls_files, off, &why) == OK);
    CHECK(!timer_is_set(&tls_files.look_again));
    tls_files_stop(&tls_files);
    config_free(on);
    config_free(off);
    stage_fini(&s);
    folder_fini(&f);
}

/* Only a restart stops listening; until then there are clients. */
TEST(who_still_listens_still_looks)
{
    struct config *off;
    struct scene sc;
    struct why why;

    scene_init(&sc);
    off = config_of(&sc.f, false);
    CHECK(tls_files_start(&sc.tls_files, off, &why) == OK);
    config_free(off);
    config_free(sc.config); /* like the server after the next reload */
    sc.config = NULL;
    folder_put(&sc.f, 0, &sc.s, (struct cert_wish){.ends_s = 60 * DAY_S});
    later(&sc.s, 10000);
    CHECK(days_left(&sc) == 60 && said(&sc, "certificates_renewed") == 1);
    check_tls_alive(&sc.s);
    scene_fini(&sc);
}

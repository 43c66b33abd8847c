/* An agent that echoes each message. client/README.md explains more. */
#include <signalbox_client.h>

static void echo(void *ctx, struct sbc_task *t)
{
    (void)ctx;
    sbc_chunk(t, t->text);
}

int main(void)
{
    const char *card = "{\"name\":\"parrot\",\"description\":\"Echoes\"}";
    struct sbc *s = sbc_open(NULL, NULL); /* SIGNALBOX_URL, SIGNALBOX_TOKEN */

    sbc_log(s, sbc_print, NULL);
    int failed = !s || sbc_register(s, card, echo, NULL) || sbc_run(s);
    sbc_close(s);
    return failed;
}

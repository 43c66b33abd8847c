/* The entry point. The same binary is the server, every command (cli/) and the
 * launcher that puts an agent's program into its sandbox (net/child/launch.h).
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "net/child/child.h"

/* If a standard descriptor is closed at the start, the next file that is opened
 * would take its number, and output would be written into a data file. */
static bool has_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], CHILD_LAUNCHER) == 0)
        child_launch();
    if (!has_standard_files())
        return EXIT_FAILED;
    return cli_main(argc, argv);
}

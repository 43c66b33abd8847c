/* The bytes of pi_tools.js, in an object of their own: the rooms are compiled
 * several times. */
#include "deliver/transports/pi_tools_file.h"

__asm__(".pushsection .rodata\n"
        ".global pi_tools_begin, pi_tools_end\n"
        ".hidden pi_tools_begin, pi_tools_end\n"
        "pi_tools_begin:\n"
        ".incbin \"" PI_TOOLS_FILE "\"\n"
        "pi_tools_end:\n"
        ".popsection\n");

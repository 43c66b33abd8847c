/* The bytes of data/transformer.sbm, as they are: see inside_data.c. */
#include "embed/transformer_file.h"

__asm__(".pushsection .rodata\n"
        ".global embed_transformer_begin, embed_transformer_end\n"
        ".hidden embed_transformer_begin, embed_transformer_end\n"
        ".balign 64\n"
        "embed_transformer_begin:\n"
        ".incbin \"" EMBED_TRANSFORMER_FILE "\"\n"
        "embed_transformer_end:\n"
        ".popsection\n");

/* A target of C needs a source; all of it is in the header. */
#include "uldp.h"

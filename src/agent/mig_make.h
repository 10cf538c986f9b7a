/* mig_make.h - making MIG instances for tasks that wait for them: the process that does it (mig_make.c), and who asks it (runtime_mig.c). */
#pragma once

int mig_make_main(int argc, char **argv);       /* `arcus device-mig`; nobody types it */

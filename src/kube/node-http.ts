/** node:http, asked for and not imported: as a module its lazy getters run, and load all of undici (5 MB and 30 ms). */
export const nodeHttp = process.getBuiltinModule('node:http')

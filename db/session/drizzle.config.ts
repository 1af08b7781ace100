import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/session/tables.ts',
  out: './db/migrations/session',
  schemaFilter: ['session'],
})

import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/catalog/tables.ts',
  out: './db/migrations/catalog',
  schemaFilter: ['catalog'],
})

import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './db/operations/tables/index.ts',
  out: './db/migrations/operations',
  schemaFilter: ['operations'],
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { ROOT } from '../../../apps/platform/base/paths.ts'

export type Service = {
  image?: string
  command?: string[]
  environment?: Record<string, string>
  ports?: string[]
  volumes?: string[]
  user?: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[]; interval: string; retries: number }
  [key: string]: unknown
}

const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')
export const document = parseDocument(text, { merge: true, uniqueKeys: true })
export const compose = document.toJS() as { services: Record<string, Service>; volumes: Record<string, unknown> }
export const service = (name: string): Service => compose.services[name] as Service

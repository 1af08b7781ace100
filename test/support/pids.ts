import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { bornAt } from '../../apps/platform/base/pids.ts'

/** The processes, except this one, whose environment sets this variable to this value. */
export const processesWith = (variable: string, value: string): number[] => {
  const setting = `${variable}=${value}`
  if (process.platform === 'linux')
    return readdirSync('/proc')
      .map(Number)
      .filter(
        (pid) => pid > 0 && pid !== process.pid && bornAt(pid) !== undefined && environmentOf(pid).includes(setting),
      )
  const { stdout } = spawnSync('ps', ['axeww', '-o', 'pid=,command='], { encoding: 'utf8' })
  return (stdout ?? '')
    .split('\n')
    .filter((line) => ` ${line} `.includes(` ${setting} `))
    .map((line) => Number.parseInt(line, 10))
    .filter((pid) => pid !== process.pid)
}

const environmentOf = (pid: number): string[] => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  } catch {
    return []
  }
}

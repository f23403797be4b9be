export { BusyError, ConnectionError, DeniedError, NotFoundError, ScheduleError, StaleError, WeekwheelError } from './errors.js';
export { Jobs } from './jobs.js';
export { Job, Worker } from './worker.js';
export { Sessions, sessionStore } from './sessions.js';

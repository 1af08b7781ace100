CREATE TABLE "operations"."schedule_runs" (
	"schedule_id" uuid NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"state" text DEFAULT 'begun' NOT NULL,
	"detail" text,
	"targets" text[],
	"intent_id" uuid,
	"plan_id" uuid,
	"operation_id" uuid,
	"leased_until" timestamp with time zone,
	CONSTRAINT "schedule_runs_schedule_id_due_at_pk" PRIMARY KEY("schedule_id","due_at")
);
--> statement-breakpoint
CREATE TABLE "operations"."schedules" (
	"schedule_id" uuid PRIMARY KEY NOT NULL,
	"status" text DEFAULT 'active' NOT NULL,
	"status_reason" text,
	"owner" jsonb NOT NULL,
	"requester_id" text NOT NULL,
	"when" jsonb NOT NULL,
	"intent" jsonb NOT NULL,
	"proceed" text NOT NULL,
	"resource_ids" text[] NOT NULL,
	"matched" text[] DEFAULT '{}' NOT NULL,
	"seen" bigint DEFAULT -1 NOT NULL,
	"next_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "schedule_runs_state" ON "operations"."schedule_runs" USING btree ("state","due_at");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "operations"."schedules" USING btree ("next_at");--> statement-breakpoint
CREATE INDEX "schedules_created_at_schedule_id_index" ON "operations"."schedules" USING btree ("created_at","schedule_id");